"""Recorded walks and games as rows."""

import itertools

import pytest

from experiments.papers.episodes import walk_rows
from rl_jax.tasks import OpenSpiel, draws
from rl_jax.worlds import Arithmetic, KeyDoor, PricedTools
from rl_jax.worlds.key_door_words import WORDS

TASK = KeyDoor(seed=58, num_train=1, words='word')


def test_without_noise_it_is_a_shortest_way():
  """By hand: key, door and goal lie in one row."""
  rows, done = walk_rows.walk(TASK, 0, 0.0, 10, draws.Draws('test'))
  assert done
  assert [row['completion'] for row in rows] == [
    *('take', 'open', 'right', 'right'),
  ]
  assert [row['prompt'] for row in rows] == [
    'k02d12g22:02->',
    'k02d12g22:02->take02k>',
    'k02d12g22:02->take02k>open02o>',
    'k02d12g22:02->take02k>open02o>right12o>',
  ]


def test_noise_is_any_word_and_the_limit_holds():
  """From any state that noise has led to."""
  used = set()
  for number in range(20):
    rows, done = walk_rows.walk(TASK, 0, 1.0, 6, draws.Draws('test', number))
    assert len(rows) <= 6 and (done or len(rows) == 6)
    for before, after in itertools.pairwise(rows):
      assert after['prompt'].startswith(before['prompt'] + before['completion'])
    used |= {row['completion'] for row in rows}
  assert used == set(WORDS['word'])
  reached = [
    walk_rows.walk(TASK, 0, 0.3, 10, draws.Draws('test', number))[1]
    for number in range(20)
  ]
  assert sum(reached) > 15


def test_players_read_what_they_would_in_a_game(stub):
  """The second one also what the first has done; nobody reads the end."""
  stub('pyspiel')
  seen, stream = set(), draws.Draws('test')
  for index in range(40):
    rows, done = walk_rows.walk(OpenSpiel(), index, 1.0, 9, stream)
    moves = ''.join(row['completion'] for row in rows)
    first, second = rows[0]['prompt'], rows[1]['prompt']
    assert done and first[0] == '0' and first[2:] == '>'
    assert second[:3] == f'1{second[1]}>' and second[1] != first[1]
    assert second[3:] == moves[0] + '>'
    if len(rows) == 3:
      assert rows[2]['prompt'] == first + moves[0] + moves[1] + '>'
    seen.add(moves)
  assert seen == {'pp', 'bb', 'bp', 'pbb', 'pbp'}


@pytest.mark.parametrize(
  'task, noise, name',
  [
    (Arithmetic(), 1.0, 'commands'),
    (PricedTools(), 1.0, 'commands'),
    (OpenSpiel(), 0.9, 'solution'),
  ],
)
def test_tasks_that_cannot_be_walked_are_named(stub, task, noise, name):
  stub('pyspiel')
  text = f'task is {type(task).__name__}, whose episodes have no property'
  with pytest.raises(ValueError, match=f"{text} '{name}'"):
    walk_rows.walk(task, 0, noise, 5, draws.Draws('test'))
