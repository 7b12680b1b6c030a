"""The list of methods and the difference of two."""

import dataclasses
import importlib

import pytest

from experiments import list_methods
from experiments.flags import configuration
from rl_jax.method import validate
from rl_jax.pieces import credit

NAMES = configuration.names('configs.methods')


def diff(old, new):
  """Lines between two named methods."""
  return list_methods.differences(
    configuration.load_method(old), configuration.load_method(new)
  )


def test_difference_of_grpo_and_dapo():
  """The four techniques of DAPO, and the KL term it removes."""
  assert diff('grpo', 'dapo') == [
    '+ shaping.OverlongPenalty(max_tokens=20480.0, buffer_tokens=4096.0, '
    "coef=1.0, counts='policy')",
    "- losses.KLPenalty(coef=0.001, estimator='k3')",
    '~ losses.PPOClip.clip_high: 0.2 -> 0.28',
    '- aggregation.SeqMeanTokenMean()',
    '+ aggregation.TokenMean()',
    '+ group_filter.ZeroVariance()',
  ]


def variants():
  """(method, variant) of every configuration that has some."""
  for name in configuration.names('configs.methods'):
    module = importlib.import_module(f'configs.methods.{name}')
    for variant in getattr(module, 'VARIANTS', {}):
      yield name, variant


@pytest.mark.parametrize('name, variant', list(variants()))
def test_a_variant_is_valid_and_changes_something(name, variant):
  """One switch each: `--method=ppo_max@no_kl`."""
  base = configuration.load_method(name)
  changed = configuration.load_method(f'{name}@{variant}')
  outputs = changed.num_values
  validate(changed, group_size=8, has_value_head=True, num_values=outputs)
  assert list_methods.differences(base, changed)


def test_an_unknown_variant_is_named():
  """The message names the nearest one."""
  with pytest.raises(ValueError, match="'nokl'. Did you mean 'no_kl'"):
    configuration.load_method('ppo_max@nokl')
  with pytest.raises(ValueError, match="variant of rloo: 'x'. Known: none"):
    configuration.load_method('rloo@x')


def test_the_order_of_pieces_is_a_difference():
  """Scaling before centring is another method."""
  grpo = configuration.load_method('grpo')
  turned = dataclasses.replace(grpo, credit=grpo.credit[::-1])
  assert list_methods.differences(grpo, turned) == [
    '> credit: GroupScale, GroupCenter'
  ]


def test_a_repeated_piece_is_told_apart():
  """The second GroupCenter is named."""
  grpo = configuration.load_method('grpo')
  twice = dataclasses.replace(grpo, credit=(*grpo.credit, credit.GroupCenter()))
  assert list_methods.differences(grpo, twice) == ['+ credit.GroupCenter()']
  assert list_methods.differences(twice, twice) == []


def test_command_prints_one_name_a_line(answers_of):
  """The command; an unknown name is an error with a suggestion."""
  commands = {'list_methods': [[], ['--diff=grpo,dappo']]}
  right, wrong = answers_of(configuration.ROOT, commands)['list_methods']
  assert right[0] == 0 and right[1].split('\n')[:-1] == NAMES
  assert wrong[0] == 2 and 'dapo' in wrong[1]
