"""Grids of MiniGrid and BabyAI, described in text."""

import dataclasses
import string
from typing import Any

from rl_jax.checks import checked
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply

_UNSEEN = ('unseen', 'empty', 'floor', 'wall')
_STATES = ('open', 'closed', 'locked')  # of doors
_SIDES = {'ahead': 6, 'left': 3, 'right': 3}  # how far is in view
# What missions and observations are often made of.
_WORDS = (
  *('left right forward pickup drop toggle done'.split()),
  *(
    f' {n} {side}' for side, most in _SIDES.items() for n in range(1, most + 1)
  ),
  *('a', 'an', '; a', '; an', 'nothing', '; you carry', 'you carry', '\n'),
  *('go to', 'pick up', 'open', 'get to', 'put', 'use', ' the', ' a', ' an'),
  *(' next to', ' and', ', then', ' after you', ' to', ' goal'),
  *(f' {color}' for color in 'red green blue purple yellow grey'.split()),
  *(f' {kind}' for kind in 'door key ball box lava'.split()),
  *(f' {state}' for state in _STATES),
)
MISSION = 'mission'  # in Example.meta, see GO_TO; in place of the own one
GO_TO = 'go to the {}'


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class MiniGrid(EnvironmentTask):
  """Episodes of `gymnasium.make(name, **options)` of the package minigrid.

    MiniGrid(name='BabyAI-GoToObj-v0')

  The first observation begins with the mission. Each one lists what is in
  view, 'a red ball 2 ahead 1 left', and what is carried. Actions are MiniGrid's
  words: left, right, forward, pickup, drop, toggle, done; any other text does
  nothing and costs no step of the grid.
  Components: `outcome` 1 at success, `reward` of the environment, `invalid` 1
  for a text that is not an action. States are the grid, so that equal
  situations of a group are equal.
  Source: MiniGrid; the wording is this code's.

  Needs the extra 'games'.
  """

  name: str = 'BabyAI-GoToObj-v0'
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> tuple[str, ...]:
    """Words of missions and observations, and ASCII characters for others."""
    return (*_WORDS, *(c for c in string.printable if c not in _WORDS))

  def prepare(self) -> None:
    """Imports the package once and begins a grid, to check it."""
    self.make(self.example('train', 0)).reset(0)

  def make(self, example: Example) -> 'MiniGridEpisode':
    """A grid that has not started."""
    return MiniGridEpisode(self, example.meta.get(MISSION))


class MiniGridEpisode(Environment):
  """An episode on the grid of one seed, in text."""

  def __init__(self, task: MiniGrid, mission: str | None = None):
    try:
      import gymnasium
      import minigrid
    except ImportError as error:
      raise ImportError(
        "MiniGrid needs the extra 'games': pip install 'rl_jax[games]'"
      ) from error
    del minigrid  # its import makes the names known
    self._grid = gymnasium.make(task.name, **task.options)
    self._actions = {one.name: one for one in self._grid.unwrapped.actions}
    self._mission = mission
    self._bot: Any = None

  def reset(self, seed: int) -> Reply:
    """The mission, and what is in view."""
    seen, _ = self._grid.reset(seed=seed)
    observed = f'{self._mission or seen["mission"]}\n{self._observed(seen)}'
    self._seen, self._bot = seen, None
    return Reply(observed, state=self._state())

  def step(self, action: str) -> Reply:
    """Returns what is in view after the action."""
    word = action.strip()
    if word not in self._actions:
      zero = {base.OUTCOME: 0.0, 'reward': 0.0, 'invalid': 1.0}
      return Reply(
        self._observed(self._seen), rewards=zero, state=self._state(), action=''
      )
    found = self._grid.step(self._actions[word])
    if self._bot is not None:
      self._advice = self._advised(self._actions[word])
    self._seen, reward, ended, truncated, _ = found
    if self._mission:  # the environment judges its own
      reward = float(self._mission == GO_TO.format(self.reached))
      ended = ended or reward
    return Reply(
      self._observed(self._seen),
      rewards={
        base.OUTCOME: float(ended and reward > 0),
        'reward': float(reward),
        'invalid': 0.0,
      },
      done=bool(ended),
      truncated=bool(truncated and not ended),
      state=self._state(),
      action=word,
    )

  @property
  def commands(self) -> tuple[str, ...]:
    """MiniGrid's words."""
    return tuple(self._actions)

  @property
  def solution(self) -> tuple[str, ...]:
    """The next action of BabyAI's bot; () if it has none.

    Raises: ValueError for a grid that is none of BabyAI's.
    """
    if self._bot is None:
      self._bot = _bot(self._grid)
      self._advice = self._advised()
    return self._advice

  @property
  def reached(self) -> str:
    """'red ball', the thing that the agent faces; '' if there is none."""
    grid = self._grid.unwrapped
    thing = grid.grid.get(*grid.front_pos)
    if thing is None or thing.type in _UNSEEN:
      return ''
    return f'{thing.color} {thing.type}'

  def close(self) -> None:
    """Closes the grid of the package."""
    self._grid.close()

  def _advised(self, done=None):
    """Returns what the bot does after the action that was done."""
    from minigrid.utils.baby_ai_bot import DisappearedBoxError

    try:
      return (self._bot.replan(done).name,)
    except (AssertionError, DisappearedBoxError):  # it cannot be solved now
      return ()

  def _state(self):
    grid = self._grid.unwrapped
    return grid.hash(size=32), grid.mission, self._carried()

  def _carried(self):
    thing = self._grid.unwrapped.carrying
    return '' if thing is None else f'{thing.color} {thing.type}'

  def _observed(self, seen):
    """Objects in view, the nearest first; the policy looks ahead."""
    from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT

    image, found = seen['image'], []
    width, depth = image.shape[0] // 2, image.shape[1] - 1
    for x, y in sorted(
      ((x, y) for x in range(image.shape[0]) for y in range(depth + 1)),
      key=lambda at: (depth - at[1] + abs(at[0] - width), at),
    ):
      kind, color, state = map(int, image[x, y])
      name = IDX_TO_OBJECT[kind]
      if name in _UNSEEN or (x, y) == (width, depth):
        continue
      door = f'{_STATES[state]} ' if name == 'door' else ''
      thing = f'{door}{IDX_TO_COLOR[color]} {name}'
      places = [(depth - y, 'ahead'), (width - x, 'left'), (x - width, 'right')]
      where = ' '.join(f'{n} {side}' for n, side in places if n > 0)
      article = 'an' if thing[0] in 'aeiou' else 'a'
      found.append(f'{article} {thing} {where}')
    if self._carried():
      found.append(f'you carry a {self._carried()}')
    return '; '.join(found or ['nothing']) + '\n'


def _bot(grid):
  if not hasattr(grid.unwrapped, 'instrs'):
    raise ValueError(
      f'MiniGrid.name = {grid.spec.id!r}: the bot solves only grids of BabyAI'
    )
  from minigrid.utils.baby_ai_bot import BabyAIBot

  return BabyAIBot(grid)
