"""The contrast of CoPG by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

REWARD = np.array([[1.0], [0.0], [0.5]])
CHANGE = np.array([[0.2], [-0.1], [0.0]])
REF = np.full((3, 1), -1.0)


def evaluate(toy, loss, change=CHANGE, reward=REWARD, group_size=3, **fields):
  """(loss, gradient in logp) of one-token rows."""
  ref = np.full(change.shape, -1.0)
  traj = toy.trajectories(
    np.ones(change.shape),
    group_size=group_size,
    logp_ref_BT=ref,
    advantages_BT=reward,
    **fields,
  )

  def value(x):
    return loss(LossContext({'logp': x}, traj, jax.random.key(0))).value

  return jax.value_and_grad(value)(jnp.asarray(ref + change, jnp.float32))


def test_by_hand(toy):
  """S = (.9, .05, .5): ((.85)^2 + .4^2 + .45^2) / 2 = .5425. Gradient
  -2 (.5) (S - mean of the others) = (-.625, .65, -.025), which sums to 0."""
  value, gradient = evaluate(toy, losses.CoPG(coef=0.5))
  np.testing.assert_allclose(value, 0.5425, rtol=1e-5)
  np.testing.assert_allclose(gradient, [[-0.625], [0.65], [-0.025]], rtol=1e-4)


def test_two_rows_half_a_reward_apart_are_ipo(toy):
  """coef^2 (1 / (2 coef) - (h - h'))^2 = .25 (1 - .3)^2 with coef .5."""
  value, _ = evaluate(
    toy,
    losses.CoPG(coef=0.5),
    CHANGE[:2],
    np.array([[0.5], [0.0]]),
    group_size=2,
  )
  np.testing.assert_allclose(value, 0.25 * 0.7**2, rtol=1e-5)


def test_the_minimum_is_the_regularised_optimum(toy):
  """h_i - h_j = (R_i - R_j) / coef: value and gradient 0."""
  value, gradient = evaluate(toy, losses.CoPG(coef=2.0), REWARD / 2.0 - 0.7)
  np.testing.assert_allclose(value, 0, atol=1e-10)
  np.testing.assert_allclose(gradient, 0, atol=1e-5)


def test_the_sampling_policy_and_constants_do_not_matter(toy):
  """E1: no importance weight; a constant per prompt drops out."""
  base, gradient = evaluate(toy, losses.CoPG())
  moved, other = evaluate(
    toy, losses.CoPG(), reward=REWARD + 5, logp_old_BT=np.full((3, 1), -9.0)
  )
  np.testing.assert_allclose(moved, base, rtol=1e-4)
  np.testing.assert_allclose(other, gradient, rtol=1e-4)


def test_dropped_rows_leave_the_pairs(toy):
  """Rows 0 and 1 only: S = (.9, .05), .85^2; row 2 has no gradient."""
  value, gradient = evaluate(
    toy, losses.CoPG(coef=0.5), weight_B=np.array([1.0, 1, 0])
  )
  np.testing.assert_allclose(value, 0.85**2, rtol=1e-5)
  assert gradient[2, 0] == 0
  value, gradient = evaluate(toy, losses.CoPG(), weight_B=np.array([1.0, 0, 0]))
  assert value == 0 and not gradient.any()  # no pair


def test_long_rows_have_gradients(toy):
  """h = (60, 0, -60), far beyond 20 nats: S = (-5, 0, 6.5) with coef .1.

  -2 (.1) (S - mean of the others) = (1.65, .15, -1.8); no row is cut off.
  """
  change = np.array([[60.0], [0.0], [-60.0]])
  reward = np.array([[1.0], [0.0], [0.5]])
  _, gradient = evaluate(toy, losses.CoPG(coef=0.1), change, reward)
  np.testing.assert_allclose(gradient, [[1.65], [0.15], [-1.8]], rtol=1e-4)
