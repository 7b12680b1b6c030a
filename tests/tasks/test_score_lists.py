"""Rewards of scores of several responses, by hand."""

import numpy as np
import pytest

from rl_jax.tasks.base import Example
from rl_jax.tasks.score_lists import (
  reward_anything,
  reward_anything_form,
  urpo,
)

THREE = Example('', '[5, 3, 1]', 0)


def said(*scores):
  inside = ', '.join(f'"{i}": {x}' for i, x in enumerate(scores, 1))
  return f'So {{{inside}}}'


def test_agreement_by_hand():
  """Gold 5, 3, 1 read as 3, 5, 1: the pair of weight 3 of 11 is reversed."""
  found = reward_anything(THREE, said(3, 5, 1))
  np.testing.assert_allclose(found['reward'], 1 - 3 / 11)
  assert found['outcome'] == 0.0
  assert reward_anything(THREE, said(2, 2, 2))['reward'] == 0.5
  assert reward_anything(THREE, said(9, 8, 7)) == {'reward': 1, 'outcome': 1}
  assert reward_anything(THREE, said(5, 3)) == {'reward': 0, 'outcome': 0}


def test_concordance_by_hand():
  """Two of three pairs in order: 1/3; of two responses the sign only."""
  np.testing.assert_allclose(urpo(THREE, said(3, 5, 1))['reward'], 1 / 3)
  two = Example('', '[0, 1]', 0)
  assert urpo(two, said(-2, 7)) == {'reward': 1.0, 'outcome': 1.0}
  assert urpo(two, said(7, -2)) == {'reward': -1.0, 'outcome': 0.0}
  assert urpo(two, 'no') == {'reward': -1.0, 'outcome': 0.0}


@pytest.mark.parametrize(
  'score', ['9' * 400, '1e400', '[' * 100_000, '9' * 5000]
)
def test_scores_beyond_the_floats_are_none(score):
  assert urpo(THREE, said(1, score, 2))['reward'] == -1.0
  assert reward_anything(THREE, said(1, 2, score))['reward'] == 0.0
  ranked = f'{{"scores": {{"1": {score}}}, "best-to-worst": ["1", "1"]}}'
  assert reward_anything_form(THREE, ranked) < 0.5


@pytest.mark.parametrize('reward', [reward_anything, urpo])
def test_only_the_order_of_the_scores_counts(reward):
  for scores in ((3, 5, 1), (1, 1, 0)):
    moved = [10 * x - 4 for x in scores]
    assert reward(THREE, said(*scores)) == reward(THREE, said(*moved))


def test_a_score_of_400_digits_is_none():
  """A response is wrong then; it does not void its own row."""
  text = said(5, 3, 10**400)
  assert reward_anything(THREE, text) == {'reward': 0, 'outcome': 0}
  assert urpo(THREE, text) == {'reward': -1.0, 'outcome': 0.0}
  ranked = RANKED.replace('3,', f'{10**400},')
  short = RANKED.replace('3,', '"x",')
  assert reward_anything_form(THREE, ranked) == reward_anything_form(
    THREE, short
  )


def test_an_answer_without_scores_is_named():
  with pytest.raises(ValueError, match='holds no two true scores'):
    urpo(Example('', '[1]', 0), said(1))


THOUGHT = '<think>' + 'x' * 51 + '</think>'
RANKED = (
  '{"scores": {"1": 5, "2": 3, "3": 1}, "best-to-worst": ["1", "2", "3"]}'
)


@pytest.mark.parametrize(
  'text, expected',
  [
    (THOUGHT + RANKED, 1.0),
    ('<think>' + 'x' * 50 + '</think>' + RANKED, 0.95),
    ('<think>' + RANKED, 0.05 + 0.15 + 0.2 + 0.2 + 0.2),
    (RANKED, 0.8),
    (THOUGHT + 'So ' + RANKED, 0.95),
    (THOUGHT, 0.2),
    (THOUGHT + '[1]', 0.2),
    # Two of three names, and a ranking of which one of two steps falls.
    (
      '{"scores": {"1": 5, "2": 3}, "best-to-worst": ["2", "1", "2"]}',
      0.4 + 0.2 * 2 / 3 + 0.1,
    ),
    ('{"scores": 3, "best-to-worst": []}', 0.4),
    ('{"scores": {"1": 1, "2": 1, "3": 1}}', 0.2 + 0.1 + 0.2),
  ],
)
def test_form_by_hand(text, expected):
  assert reward_anything_form(THREE, text) == pytest.approx(expected)


def test_scores_in_a_ranked_object_are_read():
  """The other reward reads the same responses."""
  assert reward_anything(THREE, THOUGHT + RANKED)['outcome'] == 1.0
