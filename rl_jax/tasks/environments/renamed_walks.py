"""Walks in grids, named by what they have reached."""

from collections.abc import Iterable
import contextlib
import dataclasses
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import draws, sources
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.environments import mini_grid
from rl_jax.tasks.environments.base import SEED, seed_of
from rl_jax.tasks.environments.recorded_walks import RecordedWalks

_WALKS = 1000  # that are tried
_MOST_BYTES = 1 << 22  # of a line of a log


@dataclasses.dataclass(frozen=True)
class _Walk:
  """seed: of the grid. reached: 'red ball', what the last turn faces."""

  seed: int
  reached: str
  recorded: RecordedResponse


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RenamedWalks(mini_grid.MiniGrid):
  """MiniGrid with a recorded walk of every example.

  Random actions until a thing is faced after one of them, as BabyAI judges:
  the mission becomes 'go to the red ball' after that thing. In place of a walk
  of `turns` actions that reaches nothing there is one in another grid. No
  reward is read. Examples of other splits have their own missions and the walks
  of BabyAI's bot; turns end by their length.
  loops: False leaves out the actions between two equal states, and those that
  changed nothing; what was faced at first is then not reached.
  logs: rollouts.jsonl of runs on the same grids. After the num_train random
  walks there is one for each thing that an episode of theirs faced in `turns`
  actions, until it first did, so that a mission that was fulfilled keeps its
  walk and others get one; what was not an action is left out. For grids of
  BabyAI whose missions are to go to a thing.
  Source: the data gathering of "Pre-Trained Language Models for Interactive
  Decision-Making" (LID), reconstructed from the abstract: every thing in place
  of a draw among them, and samples in place of random actions among the best.

  Raises: ValueError naming a line of a log that is not an episode of the grids.
  """

  turns: int = ranged(12, 1)
  loops: bool = True
  logs: tuple[str, ...] = ()

  @functools.cached_property
  def _walks(self) -> dict[int, _Walk]:
    """Random ones, of training examples."""
    return {}

  @functools.cached_property
  def _gathered(self) -> tuple[_Walk, ...]:
    """The walks of the logs, in their order."""
    with contextlib.closing(mini_grid.MiniGridEpisode(self)) as grid:
      return tuple(
        walk
        for path in self.logs
        for seed, actions in _episodes(path, grid.commands)
        for walk in self._reaching(grid, seed, actions)
      )

  @functools.cached_property
  def _solved(self) -> RecordedWalks:
    """The bot's walks."""
    return RecordedWalks(
      task=self, noise=0.0, turns=self.turns, num_recorded=1, turn_ends=False
    )

  def num_prompts(self, split: str) -> int:
    """The number of random walks in `train`, and of those of the logs."""
    found = super().num_prompts(split)
    return found + len(self._gathered) if split == 'train' else found

  def example(self, split: str, index: int) -> Example:
    """An initial grid; of `train` with the mission that its walk fulfils."""
    example = super().example(split, index)
    if split != 'train':
      return example
    walk = self._walk(index)
    mission = mini_grid.GO_TO.format(walk.reached)
    meta = {**example.meta, SEED: walk.seed, mini_grid.MISSION: mission}
    return dataclasses.replace(example, meta=meta)

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The walk."""
    if mini_grid.MISSION in example.meta:
      return (self._walk(example.id).recorded,)
    return self._solved.recorded(example)

  def target(self, example: Example) -> str:
    """Its first action."""
    return self.recorded(example)[0].turns[0][0]

  def _walk(self, index):
    if index >= self.num_train:
      return self._gathered[index - self.num_train]
    if index not in self._walks:
      seed = seed_of(super().example('train', index))
      self._walks[index] = self._random(seed)
    return self._walks[index]

  def _random(self, seed):
    with contextlib.closing(mini_grid.MiniGridEpisode(self)) as grid:
      for number in range(_WALKS):
        stream = draws.Draws('renamed walk', seed, number)
        actions = _endless(stream, grid.commands)
        found = self._reaching(grid, seed + number, actions, most=1)
        if found:
          return found[0]
    raise ValueError(
      f'RenamedWalks.name = {self.name!r}, turns = {self.turns}: none of '
      f'{_WALKS} random walks faces a thing'
    )

  def _reaching(self, grid, seed, actions, most=None) -> list[_Walk]:
    """The walks to the first `most` things that the actions face."""
    states = [grid.reset(seed).state]  # before each turn, and now
    faced = '' if self.loops else grid.reached
    turns, found = [], {}
    for action, _ in zip(actions, range(self.turns), strict=False):
      reply = grid.step(action)
      turns.append((action, reply.observation))
      states.append(reply.state)
      if not self.loops:
        first = states.index(reply.state)
        del turns[first:], states[first + 1 :]
      if grid.reached not in ('', faced, *found):
        # nothing is read after the last
        found[grid.reached] = (*turns[:-1], (turns[-1][0], ''))
      if reply.done or reply.truncated or len(found) == most:
        break
    return [
      _Walk(seed, x, RecordedResponse(turns=walk)) for x, walk in found.items()
    ]


def _endless(stream: draws.Draws, actions: tuple[str, ...]) -> Iterable[str]:
  while True:
    yield stream.choice(actions)


def _episodes(
  path: str, commands: tuple[str, ...]
) -> Iterable[tuple[int, list[str]]]:
  """(seed, the actions as they were understood) of a log of rollouts."""
  for file, number, row in sources.read_jsonl(path, _MOST_BYTES):
    if isinstance(row, sources.BadRowError):
      raise row
    if row.get('error') is not None:
      continue
    seed, actions = 0, []
    try:
      seed, turns = int(row['seed']), row['turns']
      actions = [turn['understood'] for turn in turns if 'understood' in turn]
      wrong = set(actions) - {*commands, '', None}
    except (KeyError, TypeError, ValueError):
      wrong = {'no seed or no turns'}
    if wrong:
      raise ValueError(
        f'RenamedWalks.logs: {file}{number} is not an episode of a grid: '
        f'{sorted(wrong)[0]}'
      )
    yield seed, [action for action in actions if action]
