"""Random walks in grids, named by what they have reached."""

import dataclasses
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import draws
from rl_jax.tasks.base import Example, Logged
from rl_jax.tasks.environments import mini_grid
from rl_jax.tasks.environments.base import SEED, seed_of
from rl_jax.tasks.environments.recorded_walks import RecordedWalks

_WALKS = 1000  # that are tried


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RenamedWalks(mini_grid.MiniGrid):
  """MiniGrid with a recorded walk of every example.

  Random actions until a thing is faced behind one of them, as BabyAI judges:
  the mission becomes 'go to the red ball' after that thing. In place of a walk
  of `turns` actions that reaches nothing there is one in another grid. No
  reward is read. Examples of other splits have their own missions and the walks
  of BabyAI's bot; turns end by their length.
  For grids of BabyAI whose missions are to go to a thing.
  Source: the data gathering of "Pre-Trained Language Models for Interactive
  Decision-Making" (LID), round 0, reconstructed from the abstract.
  """

  turns: int = ranged(12, 1)

  @functools.cached_property
  def _walks(self) -> dict[int, tuple[int, str, Logged]]:
    """(the grid's seed, what was reached, the walk) of training examples."""
    return {}

  @functools.cached_property
  def _solved(self) -> RecordedWalks:
    """The bot's walks."""
    return RecordedWalks(
      task=self, noise=0.0, turns=self.turns, num_logged=1, turn_ends=False
    )

  def example(self, split: str, index: int) -> Example:
    """An initial grid; of `train` with the mission that its walk fulfils."""
    example = super().example(split, index)
    if split != 'train':
      return example
    seed, reached, _ = self._walk(index)
    mission = f'go to the {reached}'
    meta = {**example.meta, SEED: seed, mini_grid.MISSION: mission}
    return dataclasses.replace(example, meta=meta)

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The walk."""
    if mini_grid.MISSION in example.meta:
      return (self._walk(example.id)[2],)
    return self._solved.logged(example)

  def target(self, example: Example) -> str:
    """Its first action."""
    return self.logged(example)[0].turns[0][0]

  def _walk(self, index):
    if index not in self._walks:
      example = super().example('train', index)
      self._walks[index] = self._first_that_reaches(example)
    return self._walks[index]

  def _first_that_reaches(self, example):
    seed = seed_of(example)
    for number in range(_WALKS):
      stream = draws.Draws('renamed walk', seed, number)
      grid = seed + number  # another one each time
      reached, turns = self._played(example, grid, stream)
      if reached:
        return grid, reached, Logged(turns=turns)
    raise ValueError(
      f'RenamedWalks.name = {self.name!r}, turns = {self.turns}: none of '
      f'{_WALKS} random walks faces a thing'
    )

  def _played(self, example, seed, stream):
    """(what is reached or '', the turns until then)."""
    episode, turns = self.make(example), []
    episode.reset(seed)
    reached = ''
    while not reached and len(turns) < self.turns:
      action = stream.choice(episode.commands)
      turns.append((action, episode.step(action).observation))
      reached = episode.reached
    episode.close()
    turns[-1] = turns[-1][0], ''  # nothing is read behind the last
    return reached, tuple(turns)
