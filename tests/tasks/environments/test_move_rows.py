"""Random legal moves as rows."""

import pytest

from experiments import move_rows
from rl_jax.tasks import KeyDoor, OpenSpiel, PricedTools, draws

_STREAM = draws.Draws('test')


def test_players_read_what_they_would_in_a_game(stub):
  """The second one also what the first has done; nobody reads the end."""
  stub('pyspiel')
  seen = set()
  for index in range(40):
    rows = move_rows.played(OpenSpiel(), index, 9, _STREAM)
    moves = ''.join(row['completion'] for row in rows)
    first, second = rows[0]['prompt'], rows[1]['prompt']
    assert first[0] == '0' and first[2:] == '>' and len(moves) == len(rows)
    assert second[:3] == f'1{second[1]}>' and second[1] != first[1]
    assert second[3:] == moves[0] + '>'
    if len(rows) == 3:
      assert rows[2]['prompt'] == first + moves[0] + moves[1] + '>'
    seen.add(moves)
  assert seen == {'pp', 'bb', 'bp', 'pbb', 'pbp'}


def test_a_single_player_and_the_limit():
  """Behind each move what KeyDoor says of it."""
  task = KeyDoor(seed=58, num_train=1)
  rows = move_rows.played(task, 3, 60, _STREAM)
  assert rows[0]['prompt'] == 'k02d12g22:02->'
  assert set('udlrto') >= {row['completion'] for row in rows}
  for before, after in zip(rows, rows[1:], strict=False):
    assert after['prompt'].startswith(before['prompt'] + before['completion'])
  assert len(move_rows.played(task, 0, 2, _STREAM)) == 2


def test_tasks_without_commands_are_named():
  with pytest.raises(ValueError, match='PricedTools, whose episodes have no'):
    move_rows.played(PricedTools(), 0, 5, _STREAM)
