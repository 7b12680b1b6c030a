"""The quadratic pull of DRO by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

OLD = np.array([[-1.0, -2.0]])
CHANGE = np.array([[0.2, -0.3]])
ADV = np.array([[0.5, 0.5]])


def coefficient(toy, loss, change=CHANGE, adv=ADV):
  """-dl/dlogp."""
  return toy.coefficient(loss, OLD + change, logp_old_BT=OLD, advantages_BT=adv)


def test_by_hand(toy):
  """A - d: .3 and .8. Loss: .5 (.8) + .02 = .42, .5 (2.3) + .045 = 1.195."""
  np.testing.assert_allclose(
    coefficient(toy, losses.DRO()), [[0.3, 0.8]], rtol=1e-5
  )
  traj = toy.trajectories(
    np.ones((1, 2)), group_size=1, logp_old_BT=OLD, advantages_BT=ADV
  )
  logp = jnp.asarray(OLD + CHANGE, jnp.float32)
  value = losses.DRO()(
    LossContext({'logp': logp}, traj, jax.random.key(0))
  ).value
  np.testing.assert_allclose(value, [[0.42, 1.195]], rtol=1e-5)


def test_without_coef_it_is_reinforce(toy):
  """E0: nothing is left but A."""
  np.testing.assert_array_equal(coefficient(toy, losses.DRO(coef=0.0)), ADV)


def test_it_stops_where_the_advantage_is_spent(toy):
  """At d = A / coef nothing pushes; both sides lead back there."""
  loss = losses.DRO(coef=2.0)
  change = np.array([[0.2, 0.3]])  # around .5 / 2 = .25
  actual = coefficient(toy, loss, change)
  assert actual[0, 0] > 0 > actual[0, 1]
  rest = coefficient(toy, loss, np.full((1, 2), 0.25))
  np.testing.assert_allclose(rest, 0, atol=1e-6)
