"""Rollout pieces that decide by rewards, and rewards that are learned."""

import dataclasses
import inspect

import pytest

from configs import bandit
from rl_jax.config import validate
from rl_jax.models.reward_source import RewardModel
from rl_jax.rollouts import wrappers

PIECES = [
  one
  for one in vars(wrappers).values()
  if getattr(one, 'role', None) == 'rollout'
]


@pytest.mark.parametrize('cls', PIECES, ids=lambda cls: cls.__name__)
def test_pieces_that_read_rewards_say_so(cls):
  """Rounds have the rewards of the host alone."""
  source = ''.join(
    inspect.getsource(one) for one in cls.__mro__ if one is not object
  )
  reads = 'reward_NG' in source or 'rewards_behind' in source
  assert getattr(cls, 'reads_rewards', False) or not reads


def test_learned_rewards_are_refused_where_they_are_not_seen(toy):
  config = bandit.get_config(toy.get_method('xrpo'))
  learned = (RewardModel(path='runs/rm'),)
  config = dataclasses.replace(config, reward_models=learned)
  with pytest.raises(
    ValueError, match='rollout.UncertaintyAllocation decides by rewards on the'
  ):
    validate(config)
