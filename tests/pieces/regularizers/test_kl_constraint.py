"""The squared hinge on the mean divergence by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext

OLD = np.full((2, 2), -1.0)


def evaluate(toy, piece, change, **fields):
  """(loss, gradient in logp)."""
  traj = toy.trajectories(
    np.ones((2, 2)), group_size=2, logp_old_BT=OLD, **fields
  )

  def value(x):
    return piece(LossContext({'logp': x}, traj, jax.random.key(0))).value

  return jax.value_and_grad(value)(jnp.asarray(OLD + change, jnp.float32))


def test_by_hand(toy):
  """All four tokens fell by .01: 1000 (.01 - .0001) = 9.9; value .099, and
  -9.9 / 4 each."""
  value, gradient = evaluate(toy, regularizers.KLConstraint(), -0.01)
  np.testing.assert_allclose(value, 0.099, rtol=1e-4)
  np.testing.assert_allclose(gradient, np.full((2, 2), -2.475), rtol=1e-4)


def test_it_is_the_gradient_of_the_squared_hinge(toy):
  """E1: coef / 2 max(KL - limit, 0)^2, differentiated directly."""
  piece = regularizers.KLConstraint(coef=3.0, limit=0.05)
  change = np.array([[-0.3, 0.1], [-0.4, -0.2]])
  _, gradient = evaluate(toy, piece, change)

  def hinge(x):
    return 1.5 * jnp.maximum((OLD - x).mean() - 0.05, 0.0) ** 2

  direct = jax.grad(hinge)(jnp.asarray(OLD + change, jnp.float32))
  np.testing.assert_allclose(gradient, direct, rtol=1e-4)


def test_inside_the_bound_it_is_nothing(toy):
  """E0: at the old policy, where the likelihood rose, and with coef 0."""
  for piece, change in (
    (regularizers.KLConstraint(), 0.0),
    (regularizers.KLConstraint(), 0.1),
    (regularizers.KLConstraint(limit=0.2), -0.1),
    (regularizers.KLConstraint(coef=0.0), -0.1),
  ):
    value, gradient = evaluate(toy, piece, change)
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


def test_dropped_rows_do_not_count(toy):
  """The mean is over the two tokens of row 0."""
  change = np.array([[-0.01, -0.01], [-5.0, -5.0]])
  value, gradient = evaluate(
    toy, regularizers.KLConstraint(), change, weight_B=np.array([1.0, 0.0])
  )
  np.testing.assert_allclose(value, 0.099, rtol=1e-4)
  np.testing.assert_array_equal(gradient[1], 0)
