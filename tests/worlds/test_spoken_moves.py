"""Moves of a game in words."""

import pytest

from rl_jax.tasks import OpenSpiel
from rl_jax.worlds import SpokenMoves


def test_what_is_understood():
  """A text with words of one move is that move, else none."""
  task = SpokenMoves()
  assert [task.move(text) for text in ('bet', 'i check', 'raise now')] == [
    *('b', 'p', 'b')
  ]
  assert [task.move(text) for text in ('', 'bets', 'bet or pass')] == [None] * 3
  assert task.texts('p')[:2] == ['pass', 'i pass']
  assert all(task.move(text) == 'b' for text in task.texts('b'))


def test_decisions_come_one_after_the_other():
  pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  task = SpokenMoves()
  rows = [task.example('train', index) for index in range(24)]
  assert len({row.prompt for row in rows}) == 12
  assert rows[0].prompt == rows[12].prompt and rows[0] == rows[0]
  assert '02pb>' in {row.prompt for row in rows}
  for row in rows:
    assert set(row.prompt + row.answer) <= set(task.alphabet)
    assert task.reward(row, task.target(row)) == {'outcome': 1.0}
    assert task.reward(row, 'hello') == {'outcome': 0.0}


def test_pieces_stay_pieces():
  """The letters of what is said come after them."""
  pieces = ('p', 'b', '0', '1', '2', '>', '10')
  alphabet = SpokenMoves(game=OpenSpiel(alphabet=pieces)).alphabet
  assert alphabet[:7] == pieces and 's' in alphabet
  assert len(set(alphabet)) == len(alphabet)


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match=r'SpokenMoves.frames = .*one \{\}'):
    SpokenMoves(frames=('i',))
  with pytest.raises(ValueError, match='two moves have the same word'):
    SpokenMoves(words={'p': ('go',), 'b': ('go',)})
