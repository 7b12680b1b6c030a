"""The policy waits for the critic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.objective import objective
from rl_jax.method import Method, validate
from rl_jax.pieces import losses, weights
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)


def first_weights(toy, steps):
  """The weights of three optimizer steps."""
  piece = weights.CriticFirst(steps=steps)
  traj = toy.trajectories(np.ones((2, 3)), group_size=2)
  state, found = piece.init(4), []
  for _ in range(3):
    weight_BT, _, state = piece(LossContext({}, traj, KEY, state=state))
    assert weight_BT.shape == (2, 3) and np.ptp(weight_BT) == 0
    found.append(float(weight_BT[0, 0]))
  return found


def test_by_hand(toy):
  """Two steps of the critic only; the third moves the policy, too."""
  assert first_weights(toy, 2) == [0.0, 0.0, 1.0]


def test_no_steps_change_nothing(toy):
  assert first_weights(toy, 0) == [1.0, 1.0, 1.0]


def test_values_count_from_the_start(toy):
  """Gradients of the first step by hand: none of logp, 2 (V - 1) / 4 of V."""
  method = Method(
    losses=(losses.Reinforce(), losses.ValueClip(coef=1.0)),
    weights=(weights.CriticFirst(steps=1),),
    aggregation=TokenMean(),
  )
  ones = np.ones((2, 2))
  traj = toy.trajectories(
    ones, group_size=2, advantages_BT=ones, returns_BT=ones, values_BT=0 * ones
  )
  stats = {'logp': jnp.zeros((2, 2)), 'values': jnp.zeros((2, 2))}

  def loss(x):
    return objective(method, x, traj, KEY)[0]

  found = jax.grad(loss)(stats)
  np.testing.assert_array_equal(found['logp'], 0.0)
  np.testing.assert_allclose(found['values'], -0.5)


def test_it_needs_a_critic(toy):
  method = toy.get_method('grpo').replace(weights=(weights.CriticFirst(),))
  with pytest.raises(ValueError, match='a loss of role "value"'):
    validate(method, group_size=4, has_value_head=True)
