"""A frozen lake that is crossed between holes, drawn in letters."""

import collections
import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import (
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)
from rl_jax.worlds.sokoban import MOVES, Place

ICE, HOLE, GOAL, PLAYER, DROWNED, ARRIVED = '_OGPX√'
_PARTS = 1000  # of a probability
# A slip goes to one of both sides.
_SIDES = {
  'up': ('left', 'right'),
  'down': ('left', 'right'),
  'left': ('up', 'down'),
  'right': ('up', 'down'),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class FrozenLake(EnvironmentTask):
  """Lakes with another start, goal and holes for each prompt.

  A turn is up, down, left or right; any other text moves nothing. With the
  probability `slips` a move goes to one of both sides instead; all episodes of
  a prompt slip at the same steps. P is the player, _ ice, O a hole, G the goal,
  X the player in a hole, √ at the goal. A way around the holes exists.
  Components: `outcome`, 1 at the goal, which ends the episode, as a hole does.
  Source: the rules of Gymnasium's FrozenLake; its maps are others.
  """

  size: int = ranged(4, 3, 10)
  holes: float = ranged(0.2, 0.0, 0.6)  # share of the other places
  slips: float = ranged(0.2, 0.0, 1.0)
  instructions = (
    'Walk from P to the goal G. _ is ice, O a hole that ends the walk. You may '
    'move up, down, left or right; you may slip.\n'
  )

  def make(self, example: Example) -> 'Lake':
    """A lake that is not drawn yet."""
    return Lake(self, seed_of(example))


class Lake(Environment):
  """The player, the goal and the holes."""

  def __init__(self, task: FrozenLake, seed: int):
    self._task, self._seed = task, seed

  def reset(self, seed: int) -> Reply:
    """The lake."""
    self._seed, self._steps = seed, 0
    self._player, self._goal, self._holes = _drawn(self._task, seed)
    return self._reply({})

  def step(self, action: str) -> Reply:
    """The lake after a move."""
    name = action.strip().lower()
    self._steps += 1
    if name in MOVES:
      to = _beside(self._player, self._slipped(name))
      if _inside(to, self._task.size):
        self._player = to
    won = self._player == self._goal
    rewards = {base.OUTCOME: float(won)}
    return self._reply(rewards, won or self._player in self._holes)

  def _slipped(self, name):
    """The move that is made."""
    stream = draws.Draws('frozen_lake_slip', self._seed, self._steps)
    if stream.below(_PARTS) >= round(_PARTS * self._task.slips):
      return name
    return _SIDES[name][stream.below(2)]

  def _reply(self, rewards, done=False):
    letters = dict.fromkeys(self._holes, HOLE) | {self._goal: GOAL}
    own = {HOLE: DROWNED, GOAL: ARRIVED}
    letters[self._player] = own.get(letters.get(self._player, ''), PLAYER)
    size = range(self._task.size)
    room = ''.join(
      ''.join(letters.get((row, column), ICE) for column in size) + '\n'
      for row in size
    )
    return Reply(
      room,
      rewards=rewards,
      done=done,
      state=room,
      info={'actions': list(MOVES)},
    )


def _drawn(task: FrozenLake, seed: int) -> tuple[Place, Place, frozenset]:
  """(start, goal, holes) of a lake that can be crossed."""
  places = [(x, y) for x in range(task.size) for y in range(task.size)]
  for attempt in range(1000):
    stream = draws.Draws('frozen_lake', task.size, seed, attempt)
    start = places[stream.below(len(places))]
    goal = places[stream.below(len(places))]
    holes = frozenset(
      place
      for place in places
      if stream.below(_PARTS) < round(_PARTS * task.holes)
      and place not in (start, goal)
    )
    if start != goal and goal in _reached(start, holes, task.size):
      return start, goal, holes
  raise AssertionError(f'no lake of size {task.size} for seed {seed}')


def _reached(start: Place, holes: frozenset, size: int) -> set[Place]:
  """The places that steps around the holes lead to."""
  found, queue = {start}, collections.deque([start])
  while queue:
    place = queue.popleft()
    for name in MOVES:
      to = _beside(place, name)
      if _inside(to, size) and to not in found and to not in holes:
        found.add(to)
        queue.append(to)
  return found


def _beside(place, name):
  return place[0] + MOVES[name][0], place[1] + MOVES[name][1]


def _inside(place, size):
  return all(0 <= x < size for x in place)
