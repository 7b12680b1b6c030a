"""The entropy bonus."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext


def test_by_hand(toy):
  """coef .1 on H = [2, .5]: losses -.2 and -.05, gradient -.1 in H."""
  loss = regularizers.EntropyBonus(coef=0.1)
  traj = toy.trajectories(np.ones((1, 2)), group_size=1)
  entropy, key = jnp.array([[2.0, 0.5]]), jax.random.key(0)
  value = loss(LossContext({'entropy': entropy}, traj, key)).value
  np.testing.assert_allclose(value, [[-0.2, -0.05]], rtol=1e-6)
  gradient = jax.grad(
    lambda h: loss(LossContext({'entropy': h}, traj, key)).value.sum()
  )
  np.testing.assert_allclose(gradient(entropy), [[-0.1, -0.1]], rtol=1e-6)
