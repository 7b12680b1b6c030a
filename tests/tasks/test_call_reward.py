"""ToolRL's reward, by hand."""

import json

import pytest

from rl_jax.tasks import call_reward
from rl_jax.tasks.base import Example


def call(name, **parameters):
  return {'name': name, 'parameters': parameters}


def text(*calls):
  lines = '\n'.join(map(json.dumps, calls))
  return f'<think>a</think>\n<tool_call>\n{lines}\n</tool_call>'


def reward(answer, response):
  example = Example(prompt='', answer=answer, id=0)
  return call_reward.toolrl(example, response)


def test_one_wrong_value_of_two():
  """s = 1 + 1 + 1 of S = 4: 6 * 3/4 - 3."""
  gold = text(call('f', x=1, y=2))
  found = reward(gold, text(call('f', x=1, y=3)))
  assert found == {'reward': 2.5, 'format': 1, 'correct': 1.5, 'outcome': 0}
  assert reward(gold, gold) == {
    'reward': 4,
    'format': 1,
    'correct': 3,
    'outcome': 1,
  }


def test_the_best_unused_call_is_taken_first():
  """Two calls of a name: in the other order the first takes what is left."""
  gold = [call('f', x=1), call('f', x=2)]
  # s = 1 + (1 + 1) + (1 + 1) of S = 5.
  assert call_reward.correct(gold, gold[::-1]) == pytest.approx(3)
  found = [call('f', x=2), call('f', x=3)]
  # x=1 scores 1 with either and takes the first; x=2 then has x=3.
  assert call_reward.correct(gold, found) == pytest.approx(6 * 3 / 5 - 3)
  names = [call('f', x=1), call('g', y=2)]
  one = call_reward.correct(names, [call('g', y=2), call('f', x=0)])
  assert one == call_reward.correct(names, [call('f', x=0), call('g', y=2)])


def test_names_count_as_multisets():
  """{f, f} and {f, g}: 1 / 3; parameters of g match no f."""
  assert call_reward.jaccard('ff', 'fg') == pytest.approx(1 / 3)
  assert call_reward.jaccard('', '') == 1 and call_reward.jaccard('a', '') == 0
  gold = [call('f', x=1), call('f', x=1)]
  found = [call('f', x=1), call('g', x=1)]
  expected = 6 * (1 / 3 + 2) / 5 - 3
  assert call_reward.correct(gold, found) == pytest.approx(expected)


@pytest.mark.parametrize(
  'response',
  [
    'no call',
    text(call('f')).replace('"name"', '"nam"'),
    '<think>a</think>\n<tool_call>\nnot json\n</tool_call>',
    text({'name': [], 'parameters': {}}),
  ],
)
def test_what_is_no_call_has_the_least(response):
  assert reward(text(call('f', x=1)), response)['correct'] == -3


def test_form():
  """Each part once, in order, nothing else; the answer says which parts."""
  gold = text(call('f', x=1))
  assert reward(gold, f'  {gold}\n')['format'] == 1
  for wrong in (f'{gold} and', gold.replace('</think>\n', '</think>'), 'a'):
    assert reward(gold, wrong)['format'] == 0
  assert reward(gold, f'{gold}\n{gold}')['format'] == 0
  spoken = '<think>a</think>\n<response>b</response>'
  assert reward(spoken, spoken) == {
    'reward': 1,
    'format': 1,
    'correct': 0,
    'outcome': 1,
  }
  assert reward(spoken, gold)['format'] == 0


@pytest.mark.parametrize(
  ('response', 'right'),
  [
    (text(call('f', x=1)), True),
    (text(call('g'), call('f', x=1)), True),  # further calls do not count
    (text({'x': 1}), True),  # parameters of the right name
    ('{"name": "f", "parameters": {"x": 1}}', True),  # no tags at all
    (text(call('f', x=1)) + text(call('f', x=2)), False),  # the last tags count
    (text(call('f', x='1')), False),
    (text(call('f', x=1, y=2)), False),
    (text({'name': 'f'}), False),
    ('5\n"f"\n[1]\n{"x": 1', False),  # no objects, and a torn one
    ('', False),
  ],
)
@pytest.mark.parametrize('form', [list, dict])
def test_api_bank(response, right, form):
  """The released comparison, on calls written here."""
  gold = call('f', x=1)
  columns = {'answer': [gold] if form is list else gold}
  example = Example(prompt='', answer='', id=0, meta={'columns': columns})
  expected = float(right)
  assert call_reward.api_bank(example, response) == {
    'reward': expected,
    'outcome': expected,
  }
