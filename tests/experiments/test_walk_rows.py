"""Recorded walks in KeyDoor as rows."""

import itertools

from experiments import walk_rows
from rl_jax.tasks import KeyDoor, draws
from rl_jax.tasks.environments.key_door_words import WORDS

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
