"""The regression of Reg-GRPO by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

TARGET = np.array([[1.0], [-1.0], [-1.0], [1.0]])
CHANGE = np.array([[0.3], [-0.1], [0.05], [0.2]])
OLD = np.full((4, 1), -1.0)
SHARP = losses.GroupRegression(eps=1e-12)


def evaluate(toy, loss, change, target=TARGET, **fields):
  """(loss, gradient in logp) of one-token rows in groups of four."""
  old = np.full(change.shape, -1.0)
  traj = toy.trajectories(
    np.ones(change.shape),
    group_size=4,
    logp_old_BT=old,
    advantages_BT=target,
    **fields,
  )

  def value(x):
    return loss(LossContext({'logp': x}, traj, jax.random.key(0))).value

  return jax.value_and_grad(value)(jnp.asarray(old + change, jnp.float32))


def test_value_by_hand(toy):
  """Mean .1125, population std .151554: standardised (1.2372, -1.4021,
  -.4124, .5774), mean squared difference .185471."""
  value, _ = evaluate(toy, SHARP, CHANGE)
  np.testing.assert_allclose(value, 0.185471, rtol=1e-4)


def test_gradient_at_the_old_policy(toy):
  """-(2 / 4) A / sqrt(.01) = -5 A; finite, although the std is 0."""
  _, gradient = evaluate(toy, losses.GroupRegression(), 0 * CHANGE)
  np.testing.assert_allclose(gradient, -5 * TARGET, rtol=1e-5)


def test_a_perfect_fit_has_no_gradient(toy):
  """u proportional to A."""
  value, gradient = evaluate(toy, SHARP, 0.1 * TARGET)
  np.testing.assert_allclose(value, 0, atol=1e-6)
  np.testing.assert_allclose(gradient, 0, atol=1e-4)


def test_only_the_shape_of_the_log_ratios_is_fitted(toy):
  """E1: u -> 2 u + .1 leaves the value."""
  value, _ = evaluate(toy, SHARP, CHANGE)
  moved, _ = evaluate(toy, SHARP, 2 * CHANGE + 0.1)
  np.testing.assert_allclose(moved, value, rtol=1e-4)


def test_long_rows_are_not_cut(toy):
  """Sums of -40 to 120 nats, each over eight tokens: the same shape."""
  value, _ = evaluate(toy, SHARP, CHANGE)
  rows = np.tile(50 * CHANGE, (1, 8))
  long, gradient = evaluate(toy, SHARP, rows)
  np.testing.assert_allclose(long, value, rtol=1e-4)
  assert (np.abs(gradient) > 1e-4).all()


def test_groups_without_credit_are_skipped(toy):
  """E0: no pull towards equal log-ratios, and no count in the mean."""
  both = np.concatenate([CHANGE, CHANGE])
  target = np.concatenate([TARGET, 0 * TARGET])
  value, gradient = evaluate(toy, SHARP, both, target)
  alone, _ = evaluate(toy, SHARP, CHANGE)
  np.testing.assert_allclose(value, alone, rtol=1e-5)
  np.testing.assert_array_equal(gradient[4:], 0)
