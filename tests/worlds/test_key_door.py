"""Grids, their solutions and their rewards."""

import random

import pytest

from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import KeyDoor, key_door
from rl_jax.worlds.key_door import ACTIONS, WORDS, Layout

# The start at 0, 2 and the key at 0, 1; the door at 1, 1, the goal at 2, 0.
LAYOUT = Layout(size=3, wall=1, door=1, key=(0, 1), goal=(2, 0), start=(0, 2))


def walk(task, example, actions):
  """Replies to reset and to the actions, until the end."""
  environment = task.make(example)
  replies = [environment.reset(seed_of(example))]
  for action in actions:
    replies.append(environment.step(action))
  return replies


def test_by_hand():
  """Up to the key, take it, open the door beside it, through it, and up."""
  actions = [ACTIONS[a] for a in LAYOUT.solution()]
  assert actions == ['up', 'take', 'open', 'right', 'right', 'up']
  state = (0, 1, 0)
  assert LAYOUT.next(state, ACTIONS.index('right')) == state  # it is locked
  assert LAYOUT.next(state, ACTIONS.index('open')) == state  # without a key
  assert LAYOUT.next((0, 0, 1), ACTIONS.index('open')) == (0, 0, 1)
  assert LAYOUT.described() == 'k01d11g20:'


@pytest.mark.parametrize('words', sorted(WORDS))
def test_solutions_reach_the_goal(words):
  """outcome 1 at the last step, progress 1 in all, maze -1 a step."""
  task = KeyDoor(words=words, size=5)
  for index in range(10):
    example = task.example('validation', index)
    replies = walk(task, example, task.actions(example))
    assert [r.done for r in replies] == [False] * (len(replies) - 1) + [True]
    sums = {
      name: sum(r.rewards[name] for r in replies[1:])
      for name in ('outcome', 'progress', 'maze')
    }
    assert sums == {
      'outcome': 1.0,
      'progress': 1.0,
      'maze': 2.0 - len(replies),
    }
    text = ''.join(r.observation for r in replies)
    text += ''.join(task.actions(example))
    assert set(text) <= set(task.alphabet)


def test_other_words_change_nothing():
  task = KeyDoor()
  example = task.example('train', 0)
  start, *replies = walk(task, example, ['', 'x', 'up', 'u u'])
  for reply in replies:
    assert reply.state == start.state and start.observation.endswith(
      reply.observation
    )
    assert reply.rewards == {'outcome': 0.0, 'progress': 0.0, 'maze': -4.0}
    assert reply.action == '' and not reply.done


def test_random_outcome_is_that_of_random_walks():
  """Value iteration against 4,000 episodes; 0 below the shortest solution."""
  task = KeyDoor()
  example = task.example('train', 3)
  shortest = len(task.actions(example))
  assert task.random_return(example, shortest - 1) == 0
  assert task.random_return(example, shortest) >= 6.0**-shortest
  turns, found, rng = 40, 0, random.Random(0)
  layout = task.layout(seed_of(example))
  for _ in range(4000):
    state = (*layout.start, 0)
    for _ in range(turns):
      state = layout.next(state, rng.randrange(6))
      if state[:2] == layout.goal:
        found += 1
        break
  exact = task.random_return(example, turns)
  assert abs(found / 4000 - exact) < 4 * (exact * (1 - exact) / 4000) ** 0.5


def test_random_return_by_hand():
  """Start on the key, in a corner: up and take are possible, of six.

  After up these are up and down, after take up and open.
  """
  task = KeyDoor(seed=58, num_train=1)
  example = task.example('train', 0)
  assert task.layout(seed_of(example)).described() == 'k02d12g22:'

  def of(turns, name):
    return task.random_return(example, turns, name)

  assert of(1, 'maze') == -(2 * 1 + 4 * 4) / 6
  assert of(2, 'maze') == pytest.approx(2 * of(1, 'maze'))
  assert of(1, 'progress') == 0.5 / 6
  # Any of the two turns takes the key unless it has left; the door after take.
  stays, goes, opens = 4 / 6, 1 / 6, 1 / 6
  expected = 0.5 * (goes + stays * goes) + 0.5 * goes * opens
  assert of(2, 'progress') == pytest.approx(expected)


def test_grids_of_the_splits_differ():
  task = KeyDoor(num_train=200)
  grids = {
    split: {
      task.layout(seed_of(task.example(split, index)))
      for index in range(task.num_prompts(split))
    }
    for split in ('train', 'validation', 'test')
  }
  assert not grids['train'] & grids['validation']
  assert not grids['test'] & (grids['train'] | grids['validation'])
  assert len(grids['train']) > 20


def test_walls_stand_between_start_and_goal():
  for seed in range(200):
    layout = key_door._layout(4, seed)
    assert layout.start[0] < layout.wall < layout.goal[0]
    assert layout.key[0] < layout.wall and 'open' in [
      ACTIONS[a] for a in layout.solution()
    ]
