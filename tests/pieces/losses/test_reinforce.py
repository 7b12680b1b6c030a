"""The score-function loss."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext


def test_by_hand(toy):
  """A = 2 at logp -.5 and A = -1 at -3: losses 1 and -3, coefficients A."""
  logp, adv = jnp.array([[-0.5, -3.0]]), np.array([[2.0, -1.0]])
  traj = toy.trajectories(np.ones((1, 2)), group_size=1, advantages_BT=adv)
  loss = losses.Reinforce()(
    LossContext({'logp': logp}, traj, jax.random.key(0))
  ).value
  np.testing.assert_allclose(loss, [[1.0, -3.0]])
  np.testing.assert_array_equal(
    toy.coefficient(losses.Reinforce(), logp, advantages_BT=adv, group_size=1),
    adv,
  )


def test_the_old_policy_does_not_matter(toy):
  """E0: no ratio."""
  logp, adv = jnp.array([[-0.5, -3.0]]), np.array([[2.0, -1.0]])
  coefficients = [
    toy.coefficient(
      losses.Reinforce(), logp, advantages_BT=adv, logp_old_BT=old
    )
    for old in (np.zeros((1, 2)), np.array([[-9.0, -1.0]]))
  ]
  np.testing.assert_array_equal(*coefficients)
