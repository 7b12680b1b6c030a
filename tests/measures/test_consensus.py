"""The answer of cheap modes where they agree, else that of the last."""

import numpy as np
import pytest

from rl_jax.config import EvaluationConfig
from rl_jax.measures import consensus
from rl_jax.tasks import EvaluationSet


def mode(answers, outcomes, length):
  """The greedy responses of a mode, each of `length` tokens."""

  def column(x):
    return np.asarray(x, float)[:, None]

  return {
    'reward/cluster_id': column(answers),
    'reward/outcome': column(outcomes),
    'length': column([length] * len(answers)),
  }


# Agreement on 3, none, no answer at all, agreement with one not judged.
GUESS = mode([3, 4, -1, 5], [1, 0, 0, np.nan], 2)
THOUGHT = mode([3, 5, -1, 5], [1, 0, 0, 1], 10)
CAREFUL = mode([7, 5, 6, 6], [0, 1, 1, 1], 30)


def test_by_hand():
  """Right, and 12 tokens; else the last one's outcome 1 and 42 tokens."""
  found = consensus.metrics([GUESS, THOUGHT, CAREFUL])
  assert found == {
    'agreement': 0.25,
    'pass_at_1': 1.0,
    'length': (12 + 3 * 42) / 4,
  }


def test_one_cheap_mode_decides_where_it_answers():
  """A reduction: of two modes only the first, the last if it has no answer."""
  found = consensus.metrics([GUESS, CAREFUL])
  assert found['agreement'] == 0.5 and found['pass_at_1'] == 0.75


def test_the_order_of_cheap_modes_does_not_matter():
  found = consensus.metrics([THOUGHT, GUESS, CAREFUL])
  assert found == consensus.metrics([GUESS, THOUGHT, CAREFUL])


def test_texts_stand_for_answers():
  """Texts count where the task has no cluster ids; an empty one does not."""

  def of_texts(one, texts):
    rest = {n: x for n, x in one.items() if n != 'reward/cluster_id'}
    return {**rest, 'response': np.asarray(texts, object)[:, None]}

  sets = [
    of_texts(GUESS, ['3', '4', '', '5']),
    of_texts(THOUGHT, [' 3', '5', '', '5']),
    of_texts(CAREFUL, ['7', '5', '6', '6']),
  ]
  expected = consensus.metrics([GUESS, THOUGHT, CAREFUL])
  assert consensus.metrics(sets) == expected


def test_names_must_be_sets():
  sets = (EvaluationSet(name='a'), EvaluationSet(name='b'))
  EvaluationConfig(sets=sets, consensus=('a', 'b'))
  for names in (('a',), ('a', 'c')):
    with pytest.raises(ValueError, match='evaluation.consensus = '):
      EvaluationConfig(sets=sets, consensus=names)
