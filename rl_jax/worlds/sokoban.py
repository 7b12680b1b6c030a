"""Sokoban: a box is pushed to its target in a room of letters."""

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

MOVES = {'up': (-1, 0), 'down': (1, 0), 'left': (0, -1), 'right': (0, 1)}
WALL, FLOOR, TARGET, BOX, PLACED, PLAYER, ON_TARGET = '#_OX√PS'
_PULLS = 8  # drawn moves that take a box from its target
Place = tuple[int, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Sokoban(EnvironmentTask):
  """Rooms with one box, drawn by pulling it from its target.

  A turn is up, down, left or right; any other text moves nothing. The room has
  walls around: # wall, _ floor, O target, X box, √ box on the target, P player,
  S player on the target. Reply.info has the possible actions, Reply.state the
  room.
  Components: `outcome`, 1 when the box is on its target, which ends the
  episode; `steps`, 1 for every turn; `pushed`, 1 when the box reaches it, less
  1 when it leaves.
  Source: the rules and rewards of RAGEN's SimpleSokoban (RAGEN-AI/RAGEN); its
  rooms are others.
  """

  size: int = ranged(6, 5, 10)
  reward_weights: dict[str, float] = base.weights_field(
    outcome=10.0, pushed=1.0, steps=-0.1
  )
  instructions = (
    'Push the box X to the target O. # is a wall, _ floor, P you. You may move '
    'up, down, left or right; a box moves with you if there is room.\n'
  )

  def make(self, example: Example) -> 'Room':
    """A room that is not drawn yet."""
    return Room(self, seed_of(example))


class Room(Environment):
  """The player, the box and the target, as they are now."""

  def __init__(self, task: Sokoban, seed: int):
    self._size = task.size
    self._player, self._box, self._target = _drawn(task.size, seed)

  def reset(self, seed: int) -> Reply:
    """The room."""
    self._player, self._box, self._target = _drawn(self._size, seed)
    return self._reply({})

  def step(self, action: str) -> Reply:
    """The room after a move."""
    name, before = action.strip().lower(), self._box == self._target
    if name in MOVES:
      self._move(MOVES[name])
    after = self._box == self._target
    return self._reply(
      {
        base.OUTCOME: float(after),
        'steps': 1.0,
        'pushed': float(after) - float(before),
      },
      done=after,
    )

  def _move(self, move):
    to = _beside(self._player, move)
    if to == self._box:
      beyond = _beside(to, move)
      if not _inside(beyond, self._size):
        return
      self._box = beyond
    if _inside(to, self._size):
      self._player = to

  def _reply(self, rewards, done=False):
    room = self._drawing()
    return Reply(
      room,
      rewards=rewards,
      done=done,
      state=room,
      info={'actions': list(MOVES)},
    )

  def _drawing(self):
    letters = {self._target: TARGET}
    letters[self._box] = PLACED if self._box == self._target else BOX
    on_target = self._player == self._target
    letters[self._player] = ON_TARGET if on_target else PLAYER
    lines = []
    for row in range(self._size):
      places = [(row, column) for column in range(self._size)]
      lines.append(
        ''.join(
          letters.get(x, FLOOR) if _inside(x, self._size) else WALL
          for x in places
        )
      )
    return ''.join(f'{line}\n' for line in lines)


def _drawn(size: int, seed: int) -> tuple[Place, Place, Place]:
  """(player, box, target) of a room that can be solved, box off the target."""
  for attempt in range(1000):
    stream = draws.Draws('sokoban', size, seed, attempt)

    def place(stream=stream):
      return 1 + stream.below(size - 2), 1 + stream.below(size - 2)

    target, player = place(), place()
    box, moves = target, list(MOVES.values())
    if player == box:
      continue
    for _ in range(_PULLS * size):
      move = moves[stream.below(len(moves))]
      to, behind = (
        _beside(player, move),
        (player[0] - move[0], player[1] - move[1]),
      )
      if to == box or not _inside(to, size):
        continue
      if behind == box and stream.below(2):
        box = player  # pulled: the reverse of a push
      player = to
    if box != target:
      return player, box, target
  raise AssertionError(f'no room of size {size} for seed {seed}')


def _beside(place, move):
  return place[0] + move[0], place[1] + move[1]


def _inside(place, size):
  return all(0 < x < size - 1 for x in place)
