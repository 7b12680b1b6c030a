"""Pools of prompts that grow."""

import pytest

from experiments.papers.worlds import evolved_rows as evolved

POOL = [
  {'prompt': 'c 1 2 3=', 'completion': '1 2 3', 'parent': None},
  {'prompt': 'r 1 2 3=', 'completion': '3 2 1', 'parent': 'c 1 2 3='},
]


def written(*texts):
  """Lines of a log of a creator that was asked for the first prompt."""
  return [{'prompt': 'c 1 2 3=', 'response': text} for text in texts]


def test_rows_by_hand():
  """The right answer; a text of another form is none."""
  row = evolved.row_of('d 1 3 2 2=', 'd 1 3 2=')
  assert row == {
    'prompt': 'd 1 3 2 2=',
    'completion': '3 2 2 1',
    'family': 'd',
    'difficulty': 4,
    'parent': 'd 1 3 2=',
  }
  for text in ('', 'd 1 3', 'd 1=', 'x 1 3=', 'd 13=', 'd 1 3= ', '1 3='):
    assert evolved.row_of(text, None) is None


def test_a_pool_grows_by_what_is_new_and_well_formed():
  log = written('c 1 2 3 4=', 'r 1 2 3=', 'nonsense', 'c 1 2 3 4=')
  found = evolved.grown(POOL, log)
  assert found[:2] == POOL
  (new,) = found[2:]
  assert new['completion'] == '1 2 3 4' and new['parent'] == 'c 1 2 3='
  assert evolved.grown(POOL, written('nonsense')) == POOL


def test_a_batch_has_as_many_old_prompts_as_new_ones():
  found = evolved.batch(POOL, written('c 4 5='), 0)
  assert [row['prompt'] for row in found[:1]] == ['c 4 5=']
  assert len(found) == 2 and found[1] in POOL
  assert evolved.batch(POOL, written('nonsense'), 0) == POOL


def test_lessons_are_rewritings_whose_outcomes_differ():
  """Prompts of the beginning have no parent, and teach nothing."""
  lesson = {'prompt': 'c 1 2 3=', 'completion': 'r 1 2 3='}
  assert evolved.lessons(POOL, [[0, 1], [0, 1]]) == [lesson]
  assert evolved.lessons(POOL, [[0, 1], [1, 1]]) == []
  assert evolved.lessons(POOL, [[0, 1], [None, 1]]) == []
  with pytest.raises(ValueError, match='has 1 rows, --pool 2'):
    evolved.lessons(POOL, [[0, 1]])


def test_rewritings_by_the_rule():
  """All three kinds occur, and each is a prompt."""
  found = [evolved.rewritten('c 1 2 3=', seed) for seed in range(40)]
  sizes = {len(text.split(' ')) for text in found}
  assert sizes == {3, 4, 5}
  assert all(evolved.row_of(text, None) for text in found)
  assert any(text[0] != 'c' for text in found)
  assert found == [evolved.rewritten('c 1 2 3=', seed) for seed in range(40)]
