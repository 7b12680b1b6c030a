"""Observations of environments are tokens to learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.learning import objective, statistics
from rl_jax.pieces import regularizers
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import LossContext
from rl_jax.pieces.statistics import ObservationLogp
from rl_jax.tasks import MemoryWindow
from rl_jax.types import ENVIRONMENT, POLICY
from rl_jax.worlds import KeyDoor

KEY = jax.random.key(0)
LOGP = jnp.array([[-7.0, -1.0, -3.0], [-7.0, -2.0, -7.0], [-7.0, -5.0, -7.0]])
KIND = np.array([[1, 2, 2], [1, 2, 1], [1, 2, 1]])
MASK = (KIND == POLICY).astype(np.float32)


def rows(toy, **fields):
  return toy.trajectories(MASK, group_size=3, kind_BT=KIND, **fields)


def test_by_hand(toy):
  """-.5 times the mean of -1, -3 and -2: the last row is not trained."""
  traj = rows(toy, weight_B=np.array([1.0, 0.5, 0.0]))
  piece = regularizers.ObservationLoss(coef=0.5)

  def loss(x):
    return piece(LossContext({'observation_logp': x}, traj, KEY)).value

  value, gradient = jax.value_and_grad(loss)(LOGP)
  np.testing.assert_allclose(value, 1.0, rtol=1e-6)
  sixth = np.array([[0, 1, 1], [0, 1, 0], [0, 0, 0]]) / 6
  np.testing.assert_allclose(gradient, -sixth, rtol=1e-6)


def test_it_is_one_term_of_a_method(toy):
  """Added to the loss; without it, with coef 0 or no observation nothing is."""
  method = toy.get_method('reinforce')
  stats = {'logp': LOGP, 'observation_logp': LOGP}
  traj = rows(toy, advantages_BT=MASK)

  def loss(traj, *more):
    one = method.replace(losses=(*method.losses, *more))
    return float(objective.objective(one, stats, traj, KEY)[0])

  plain, piece = loss(traj), regularizers.ObservationLoss
  np.testing.assert_allclose(
    loss(traj, piece(coef=1.0)) - plain, 11 / 4, rtol=1e-6
  )
  assert loss(traj, piece(coef=0.0)) == plain
  without = traj.replace(kind_BT=jnp.asarray(MASK, jnp.int32))
  assert loss(without, piece(coef=1.0)) == plain


def test_observations_that_repeat_are_refused():
  """Observations that a memory repeats would be learned several times."""
  rollout = type('Rollout', (), {'turns': 1})()
  piece = regularizers.ObservationLoss()
  piece.check(CheckContext(task=KeyDoor(), rollout=rollout))
  with pytest.raises(ValueError, match='MemoryWindow repeat what was said'):
    piece.check(CheckContext(task=MemoryWindow(KeyDoor()), rollout=rollout))


def test_the_statistic_is_the_likelihood_of_the_token(tiny):
  """E1: what a token has as one of the policy's, it has as an observation."""
  traj, params = tiny.rollout(), tiny.params()
  forward = statistics.Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE)
  odd_BT = traj.mask_BT * (jnp.arange(traj.mask_BT.shape[1]) % 2)[None]
  told = traj.replace(
    kind_BT=jnp.where(odd_BT > 0, ENVIRONMENT, traj.kind_BT),
    mask_BT=traj.mask_BT - odd_BT,
  )

  def compute(traj, *needs):
    return statistics.token_statistics(forward, params, traj, needs)

  logp_BT = compute(traj)['logp']
  found = compute(told, ObservationLogp())
  np.testing.assert_allclose(
    found['observation_logp'], logp_BT * odd_BT, rtol=1e-5
  )
  np.testing.assert_allclose(found['logp'], logp_BT * told.mask_BT, rtol=1e-5)
  assert float(odd_BT.sum()) > 3


def test_it_needs_episodes(toy):
  """The message names the field."""
  method = toy.get_method('grpo')
  more = (*method.losses, regularizers.ObservationLoss())
  config = bandit.get_config(method.replace(losses=more))
  with pytest.raises(ValueError, match='rollout.turns = null'):
    validate(config)
