"""Lakes that can be crossed."""

import pytest

from rl_jax.tasks import Reworded
from rl_jax.worlds import FrozenLake
from rl_jax.worlds.frozen_lake import Lake, _drawn, _reached


def begun(task, index=0):
  example = task.example('train', index)
  episode = task.make(example)
  return episode, episode.reset(example.meta['seed'])


def path_of(task, seed):
  """Shortest moves around the holes, by breadth."""
  start, goal, holes = _drawn(task, seed)
  paths, seen = [((), start)], {start}
  moves = {'up': (-1, 0), 'down': (1, 0), 'left': (0, -1), 'right': (0, 1)}
  for names, place in paths:
    if place == goal:
      return names
    for name, (x, y) in moves.items():
      to = place[0] + x, place[1] + y
      inside = all(0 <= n < task.size for n in to)
      if inside and to not in holes and to not in seen:
        seen.add(to)
        paths.append(((*names, name), to))
  raise AssertionError('no way')


@pytest.mark.parametrize('seed', range(5))
def test_the_way_around_the_holes_ends_at_the_goal(seed):
  """Without slips only the last step has the outcome."""
  task = FrozenLake(slips=0.0)
  episode = Lake(task, seed)
  assert episode.reset(seed).observation.count('P') == 1
  found = [episode.step(name) for name in path_of(task, seed)]
  outcomes = [reply.rewards['outcome'] for reply in found]
  assert outcomes == [0.0] * (len(found) - 1) + [1.0]
  assert found[-1].done and '√' in found[-1].observation


def test_a_hole_ends_the_walk():
  task = FrozenLake(slips=0.0, holes=0.6)
  drowned = 0
  for index in range(20):
    episode, _ = begun(task, index)
    for name in ('up', 'left', 'down', 'down', 'right', 'right') * 3:
      reply = episode.step(name)
      if reply.done:
        break
    if 'X' in reply.observation:
      drowned += 1
      assert reply.done and reply.rewards['outcome'] == 0.0
  assert drowned > 5


def test_slips_go_to_a_side_and_are_those_of_the_prompt():
  """A share of about `slips`; equal actions of an example end equally."""
  task = FrozenLake(size=10, slips=0.3, holes=0.0)
  slipped = [Lake(task, seed) for seed in range(300)]
  names = []
  for seed, lake in enumerate(slipped):
    lake.reset(seed)
    lake._steps += 1
    names.append(lake._slipped('up'))
  assert 60 < sum(name != 'up' for name in names) < 120
  assert {*names} == {'up', 'left', 'right'}
  ways = []
  for _ in range(2):
    episode, _ = begun(FrozenLake(slips=0.5), 3)
    ways.append([episode.step('up').observation for _ in range(3)])
  assert ways[0] == ways[1]


def test_other_texts_move_nothing():
  episode, first = begun(FrozenLake(slips=1.0))
  assert episode.step('jump').observation == first.observation
  assert len(_reached((0, 0), frozenset(), 4)) == 16


def test_prompts_are_of_a_user():
  """Chat is a field of the task around it."""
  task = Reworded(task=FrozenLake(), chat=True)
  assert task.traits.chat and not Reworded(task=FrozenLake()).traits.chat
  with pytest.raises(ValueError, match='Reworded.first = .* has no {observ'):
    Reworded(task=FrozenLake(), first='{actions}')
