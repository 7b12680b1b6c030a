"""A taste in a circle: its judges, and what is least exploitable."""

import pytest

from rl_jax.models.judge_source import filled
from rl_jax.worlds import CircularTaste, circular_taste


def asked(template, **texts):
  return filled(template, {'prompt': 'a=', **texts})


@pytest.mark.parametrize(
  ('first', 'second', 'expected'),
  [
    ('x', 'z', 0.9),  # rock, scissors
    ('z', 'x', 0.1),
    ('z', 'y', 0.7),
    ('y', 'x', 0.6),
    ('x', 'x', 0.5),
    ('', 'x', 0.0),
    ('x', 'xx', 1.0),
    ('', '', 0.5),
  ],
)
def test_preferences_by_hand(first, second, expected):
  """Both orders of a pair add up to 1."""
  pair = {'first': first, 'second': second}
  question = asked(circular_taste.PAIRS, **pair)
  assert circular_taste.preference(question) == pytest.approx(expected)
  turned = asked(circular_taste.PAIRS, first=second, second=first)
  assert circular_taste.preference(turned) == pytest.approx(1 - expected)


def test_the_score_prefers_rock():
  """Means of (.5, .4, .9), (.6, .5, .3) and (.1, .7, .5)."""
  found = [
    circular_taste.mean_preference(asked(circular_taste.ONE, response=x))
    for x in 'xyz'
  ]
  assert found == pytest.approx([0.6, 1.4 / 3, 1.3 / 3])


def test_exploitability_by_hand():
  """Paper beats rock in 60%; of the shares of Nash nothing is preferred."""
  value = circular_taste.exploitability
  assert value({'rock': 1.0}) == pytest.approx(0.1)
  assert value({'scissors': 1.0}) == pytest.approx(0.4)
  assert value(circular_taste.NASH) == pytest.approx(0.0, abs=1e-12)
  equal = dict.fromkeys(circular_taste.KINDS, 1 / 3)
  assert value(equal) == pytest.approx(0.1)


def test_each_prompt_has_its_own_kinds():
  task = CircularTaste()
  found = set()
  for index in range(6):
    example = task.example('train', index)
    kinds = []
    for answer in 'xyz':
      reward = task.reward(example, answer)
      assert reward['outcome'] == 1.0
      kinds += [name for name in circular_taste.KINDS if reward[name]]
    assert sorted(kinds) == sorted(circular_taste.KINDS)
    found.add(tuple(kinds))
  assert len(found) == 6
  assert set(task.reward(example, 'a').values()) == {0.0}


def test_other_questions_are_refused():
  with pytest.raises(ValueError, match='is not of the form'):
    circular_taste.preference('x or y?')
