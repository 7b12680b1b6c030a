"""Values that could only fail later, or lock up the machine, are refused."""

import dataclasses
import math

import pytest

from configs.worlds import bandit, keydoor
from rl_jax.config import validate
from rl_jax.overrides import override
from rl_jax.tasks import EvaluationSet, WithTools, sources
from rl_jax.worlds import Arithmetic


@pytest.mark.parametrize(
  ('path', 'text'),
  [
    ('verifier.num_workers', '100000'),
    ('evaluation.num_prompts', '0'),
    ('evaluation.batch_prompts', '0'),
    ('evaluation.every', '-1'),
  ],
)
def test_a_value_out_of_range_is_named(toy, path, text):
  config = bandit.get_config(toy.get_method('grpo'))
  with pytest.raises(ValueError, match=path.split('.')[1]):
    override(config, path, text)


@pytest.mark.parametrize('weights', [{}, {'outcome': math.inf}])
def test_rewards_without_finite_weights_are_refused(toy, weights):
  config = bandit.get_config(toy.get_method('grpo'))
  task = dataclasses.replace(config.task, reward_weights=weights)
  with pytest.raises(ValueError, match='reward_weights'):
    validate(dataclasses.replace(config, task=task))


def test_half_a_character_in_a_row_is_named():
  """A lone surrogate cannot be tokenized; a pair is one character."""
  error = sources._parse_line(b'{"q": "\\ud800"}', 'x.jsonl:3')
  assert 'x.jsonl:3' in str(error) and 'UTF-8' in str(error)
  assert sources._parse_line(b'{"q": "\\ud83d\\ude00"}', 'x') == {'q': '😀'}


@pytest.mark.parametrize('place', ['task', 'evaluation'])
def test_tools_that_have_more_time_than_their_turn_are_named(toy, place):
  """Functions of the user's; a limit of a turn would never end one."""
  config = keydoor.get_config(toy.get_method('grpo'))
  config = override(config, 'verifier.num_workers', '1')
  own = WithTools(
    task=Arithmetic(),
    functions=('configs.smollm2_lookup:ask',),
    shown='text',
    turn_seconds=8.0,
  )
  if place == 'task':
    config = dataclasses.replace(config, task=own)
  else:
    one = EvaluationSet(name='other', task=own)
    evaluation = dataclasses.replace(config.evaluation, sets=(one,))
    config = dataclasses.replace(config, evaluation=evaluation)
  validate(override(config, 'verifier.timeout_seconds', '8.0'))
  text = 'turn_seconds = 8.0: expected at most verifier.timeout_seconds = 7.5'
  with pytest.raises(ValueError, match=text):
    validate(override(config, 'verifier.timeout_seconds', '7.5'))


@pytest.mark.parametrize('name', ['limits', 'rates'])
@pytest.mark.parametrize(
  ('made', 'kind', 'other'),
  [(keydoor, 'step', 'reward'), (bandit, 'reward', 'step')],
)
def test_a_limit_of_calls_that_nobody_makes_is_named(
  toy, name, made, kind, other
):
  """Rewards of episodes are a part of their steps, so they have no limit."""
  config = override(
    made.get_config(toy.get_method('grpo')), 'verifier.on_device', 'False'
  )
  validate(override(config, f'verifier.{name}', f"{{'{kind}': 4}}"))
  with pytest.raises(ValueError, match=rf"verifier.{name} = .* \['{other}'\]"):
    validate(override(config, f'verifier.{name}', f"{{'{other}': 4}}"))
