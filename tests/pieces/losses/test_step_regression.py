"""The step regression of Direct Advantage PO by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext


def evaluate(toy, loss, change, adv, mask=None, **fields):
  """(loss, gradient in logp)."""
  change = np.array(change)
  old = np.full(change.shape, -1.0)
  traj = toy.trajectories(
    np.ones(change.shape) if mask is None else np.array(mask),
    group_size=len(change),
    logp_old_BT=old,
    advantages_BT=np.array(adv),
    **fields,
  )

  def value(x):
    return loss(LossContext({'logp': x}, traj, jax.random.key(0))).value

  return jax.value_and_grad(value)(jnp.asarray(old + change, jnp.float32))


LOSS = losses.StepRegression(coef=0.1)


def test_by_hand(toy):
  """A = (.3, 0, -.3) over .1 and u = (3, 0, -1): (0 + 0 + 4) / 2 / 3.
  Gradient (u - A / coef) / 3: 2 / 3 on the third row."""
  value, gradient = evaluate(
    toy, LOSS, [[3.0], [0.0], [-1.0]], [[0.3], [0.0], [-0.3]]
  )
  np.testing.assert_allclose(value, 2 / 3, rtol=1e-5)
  np.testing.assert_allclose(
    gradient, [[0], [0], [2 / 3]], rtol=1e-4, atol=1e-5
  )


def test_actions_between_observations_are_steps(toy):
  """Two steps of two and one token; u = (.3, .4). A is the mean inside a step:
  (.02, .03): (.2 - .3)^2 / 2 and (.3 - .4)^2 / 2, mean .005."""
  value, gradient = evaluate(
    toy,
    LOSS,
    [[0.1, 0.2, 9.0, 0.4]],
    [[0.01, 0.03, 9.0, 0.03]],
    [[1.0, 1, 0, 1]],
  )
  np.testing.assert_allclose(value, 0.005, rtol=1e-4)
  np.testing.assert_allclose(gradient, [[0.05, 0.05, 0, 0.05]], rtol=1e-4)


def test_marks_begin_steps(toy):
  """The same two steps without an observation between them."""
  value, gradient = evaluate(
    toy,
    losses.StepRegression(coef=0.1, segments='extras'),
    [[0.1, 0.2, 0.4]],
    [[0.01, 0.03, 0.03]],
    extras={'segment_start_BT': np.array([[1, 0, 1]])},
  )
  np.testing.assert_allclose(value, 0.005, rtol=1e-4)
  np.testing.assert_allclose(gradient, [[0.05, 0.05, 0.05]], rtol=1e-4)


def test_at_the_old_policy_it_is_a_policy_gradient(toy):
  """-A / coef over the number of steps."""
  _, gradient = evaluate(toy, LOSS, [[0.0], [0.0]], [[0.3], [-0.5]])
  np.testing.assert_allclose(gradient, [[-1.5], [2.5]], rtol=1e-5)


def test_log_ratio_may_move_inside_a_step(toy):
  """E1: only its sum counts."""
  adv = [[0.05, 0.05]]
  base, gradient = evaluate(toy, LOSS, [[0.3, -0.1]], adv)
  moved, other = evaluate(toy, LOSS, [[0.1, 0.1]], adv)
  np.testing.assert_allclose(moved, base, rtol=1e-5)
  np.testing.assert_allclose(other, gradient, rtol=1e-5)


def test_dropped_rows_count_in_no_mean(toy):
  """E0 for their gradient."""
  value, gradient = evaluate(
    toy, LOSS, [[0.3], [5.0]], [[0.0], [1.0]], weight_B=np.array([1.0, 0.0])
  )
  np.testing.assert_allclose(value, 0.045, rtol=1e-4)
  assert gradient[1, 0] == 0
