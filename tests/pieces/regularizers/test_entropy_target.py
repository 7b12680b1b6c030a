"""The mean entropy is held at a target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)
ENTROPY = jnp.array([[2.0, 0.5], [0.5, 9.0]])
MASK = np.array([[1, 1], [1, 0]])  # mean 1


def loss_and_gradient(toy, **fields):
  """Two rows whose last token is padding."""
  piece = regularizers.EntropyTarget(coef=0.3, **fields)
  traj = toy.trajectories(MASK, group_size=2)

  def loss(x):
    return piece(LossContext({'entropy': x}, traj, KEY)).value

  return jax.value_and_grad(loss)(ENTROPY)


@pytest.mark.parametrize(
  ('target', 'loss', 'slope'),
  [(0.6, 0.12, 0.1), (1.5, 0.15, -0.1), (1.0, 0.0, 0.0)],
)
def test_by_hand(toy, target, loss, slope):
  """.3 |1 - target|; each of three tokens pulls with .3 / 3."""
  value, gradient = loss_and_gradient(toy, target=target)
  np.testing.assert_allclose(value, loss, atol=1e-7)
  np.testing.assert_allclose(gradient, slope * MASK, atol=1e-7)


def test_target_zero_is_a_penalty_on_entropy(toy):
  """E1: EntropyBonus with the sign turned, as its mean over tokens."""
  _, gradient = loss_and_gradient(toy, target=0.0)
  bonus = regularizers.EntropyBonus(coef=-0.3)
  traj = toy.trajectories(MASK, group_size=2)

  def value(x):
    return (
      bonus(LossContext({'entropy': x}, traj, KEY)).value * MASK
    ).sum() / 3

  np.testing.assert_allclose(gradient, jax.grad(value)(ENTROPY), rtol=1e-6)
