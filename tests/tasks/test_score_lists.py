"""Rewards of scores of several responses, by hand."""

import numpy as np
import pytest

from rl_jax.tasks.base import Example
from rl_jax.tasks.score_lists import reward_anything, urpo

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
  """Two of three pairs in order: 1/3; of two responses the sign alone."""
  np.testing.assert_allclose(urpo(THREE, said(3, 5, 1))['reward'], 1 / 3)
  two = Example('', '[0, 1]', 0)
  assert urpo(two, said(-2, 7)) == {'reward': 1.0, 'outcome': 1.0}
  assert urpo(two, said(7, -2)) == {'reward': -1.0, 'outcome': 0.0}
  assert urpo(two, 'no') == {'reward': -1.0, 'outcome': 0.0}


@pytest.mark.parametrize('reward', [reward_anything, urpo])
def test_only_the_order_of_the_scores_counts(reward):
  for scores in ((3, 5, 1), (1, 1, 0)):
    moved = [10 * x - 4 for x in scores]
    assert reward(THREE, said(*scores)) == reward(THREE, said(*moved))


def test_an_answer_without_scores_is_named():
  with pytest.raises(ValueError, match='holds no two true scores'):
    urpo(Example('', '[1]', 0), said(1))
