"""Rollout pieces that decide by rewards, and rewards that are learned."""

import dataclasses
import inspect

import pytest

from configs.worlds import bandit
from experiments.flags.configuration import load_method
from rl_jax.config import validate
from rl_jax.judging import learned_checks
from rl_jax.models.judge_source import Judge
from rl_jax.models.reward_source import RewardModel
from rl_jax.overrides import override
from rl_jax.pieces import shaping
from rl_jax.rollouts import wrappers

PIECES = [
  one
  for one in vars(wrappers).values()
  if getattr(one, 'role', None) == 'rollout'
]


@pytest.mark.parametrize('cls', PIECES, ids=lambda cls: cls.__name__)
def test_pieces_that_read_rewards_say_so(cls):
  """Rounds have the rewards of the host only."""
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


PAIRS = Judge(template='{first}{second}', name='pairs')
OF_PAIRS = RewardModel(path='runs/rm', separator='|')


def configured(toy, name, *sources, **fields):
  """The bandit, whose task rewards nothing, with these models and judges."""
  config = bandit.get_config(toy.get_method(name))
  judges = tuple(one for one in sources if isinstance(one, Judge))
  models = tuple(one for one in sources if isinstance(one, RewardModel))
  task = dataclasses.replace(config.task, reward_weights={'outcome': 0.0})
  config = dataclasses.replace(
    config, judges=judges, reward_models=models, task=task
  )
  for path, value in fields.items():
    config = override(config, path.replace('__', '.'), value)
  return config


@pytest.mark.parametrize(
  'name, source',
  [
    ('guide_grpo', PAIRS),
    ('xrpo', PAIRS),
    ('mcts_dpo', PAIRS),
    ('spin', PAIRS),
    ('spin', OF_PAIRS),
    ('remax', PAIRS),
    ('remax', OF_PAIRS),
  ],
)
def test_win_rates_of_other_groups_are_refused(toy, name, source):
  """By the rollout piece and the source; a weight of 0 only measures."""
  config = configured(toy, name, source)
  piece = type(config.method.rollout).__name__
  with pytest.raises(
    ValueError, match=f'{piece} judges rows in groups .*{source.name} compares'
  ):
    learned_checks.check_learned(config)
  unweighted = dataclasses.replace(source, weight=0.0)
  if isinstance(source, Judge):
    learned_checks.check_learned(configured(toy, name, unweighted))


def test_win_rates_of_windows_are_refused(toy):
  config = configured(toy, 'grpo', PAIRS, rollout__window_tokens='1')
  with pytest.raises(ValueError, match='window_tokens = 1 with judges.pairs'):
    learned_checks.check_learned(config)


@pytest.mark.parametrize('name', ['nash_md', 'pairwise_rl', 'spo', 'sppo'])
def test_win_rates_are_of_one_judge(toy, name):
  """Pairs by one; further rewards with a weight have no place in P."""
  for source in (PAIRS, OF_PAIRS):
    learned_checks.check_learned(configured(toy, name, source))
  measured = Judge(template='{response}', name='other', weight=0.0)
  learned_checks.check_learned(configured(toy, name, PAIRS, measured))
  single = dataclasses.replace(measured, weight=0.1)
  for more in (OF_PAIRS, single):
    with pytest.raises(ValueError, match='shaping.0.WinRate compares respons'):
      learned_checks.check_learned(configured(toy, name, PAIRS, more))
  config = configured(toy, name, PAIRS, task__reward_weights="{'outcome': 1.0}")
  with pytest.raises(ValueError, match="but .'outcome'. have weights, too"):
    learned_checks.check_learned(config)


def test_win_rates_are_not_compared_across_iterations(toy):
  config = configured(toy, 'spo', PAIRS)
  method = config.method.replace(shaping=(shaping.QueueWinRate(),))
  config = dataclasses.replace(config, method=method)
  with pytest.raises(ValueError, match='QueueWinRate compares rewards of diff'):
    learned_checks.check_learned(config)


def test_win_rates_are_no_logits(toy):
  """sppo@single reads sigmoid of a difference of rewards as a probability."""
  config = configured(toy, 'sppo', PAIRS)
  config = dataclasses.replace(config, method=load_method('sppo@single'))
  with pytest.raises(ValueError, match='PairTargets.. reads differences'):
    learned_checks.check_learned(config)
