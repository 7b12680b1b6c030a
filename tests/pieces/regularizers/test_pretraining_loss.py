"""The ptx term on rows from data, and PPO on the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.pieces import losses, regularizers, weights
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)
LOGP = jnp.array([[-1.0, -3.0], [-2.0, -9.0], [-5.0, -5.0]])
MASK = np.array([[1, 1], [1, 0], [1, 1]])
LOGGED = {'logged_B': np.array([1.0, 1.0, 0.0])}


def test_by_hand(toy):
  """-.5 times the mean of -1, -3 and -2, the tokens of the recorded rows."""
  traj = toy.trajectories(MASK, group_size=3, extras=LOGGED)
  piece = regularizers.PretrainingLoss(coef=0.5)

  def loss(x):
    return piece(LossContext({'logp': x}, traj, KEY)).value

  value, gradient = jax.value_and_grad(loss)(LOGP)
  np.testing.assert_allclose(value, 1.0, rtol=1e-6)
  third = np.array([[1, 1], [1, 0], [0, 0]]) / 6
  np.testing.assert_allclose(gradient, -third, rtol=1e-6)


def test_on_data_alone_it_is_the_likelihood(toy):
  """E1: the mean of NegativeLogLikelihood; without data it is 0."""
  traj = toy.trajectories(MASK, group_size=3, extras={'logged_B': np.ones(3)})
  piece = regularizers.PretrainingLoss(coef=1.0)
  token_BT = losses.NegativeLogLikelihood()(
    LossContext({'logp': LOGP}, traj, KEY)
  ).value
  value = piece(LossContext({'logp': LOGP}, traj, KEY)).value
  np.testing.assert_allclose(value, (token_BT * MASK).sum() / 5, rtol=1e-6)
  traj = toy.trajectories(MASK, group_size=3)
  assert piece(LossContext({'logp': LOGP}, traj, KEY)).value == 0.0


def test_other_losses_leave_data_out(toy):
  """Weights by hand; of every role."""
  traj = toy.trajectories(MASK, group_size=3, extras=LOGGED)
  weight_BT = weights.SampledRows()(LossContext({}, traj, KEY)).value
  np.testing.assert_array_equal(weight_BT, [[0, 0], [0, 0], [1, 1]])
  assert set(weights.SampledRows().weighs) == {'policy', 'regularizer', 'value'}


def test_it_needs_data(toy):
  """The message names the field."""
  method = toy.get_method('grpo')
  more = (*method.losses, regularizers.PretrainingLoss())
  config = bandit.get_config(method.replace(losses=more))
  with pytest.raises(ValueError, match='rollout.recorded_prompts = 0'):
    validate(config)
