"""Games of TextArena for one player."""

import dataclasses
from typing import Any

from rl_jax.checks import checked
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import EnvironmentTask, Reply


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class TextArena(EnvironmentTask):
  """Episodes of `textarena.make(name, **options)` with one player.

    TextArena(name='TowerOfHanoi-v0')

  Games for several players are errors. Components: `outcome`, 1 if the game's
  reward is at least `solved`, and `reward`, both at the end of the game. A game
  draws from the global generators: processes exchange their states between the
  episodes that they hold.

  Raises: ValueError as above. Needs the extra 'games'.
  """

  name: str = 'TowerOfHanoi-v0'
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  solved: float = 1.0
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  def prepare(self) -> None:
    """Imports the package once and begins a game, to check it."""
    self.make(self.example('train', 0)).reset(0)

  def make(self, example: Example) -> 'TextArenaEpisode':
    """A game that has not begun."""
    return TextArenaEpisode(self)


class TextArenaEpisode:
  """One game."""

  def __init__(self, task: TextArena):
    try:
      import textarena
    except ImportError as error:
      raise ImportError(
        "TextArena needs the extra 'games': pip install 'rl_jax[games]'"
      ) from error
    self._task = task
    # Without wrappers, which repeat all of the game at every turn.
    self._game = textarena.make(f'{task.name}-raw', **task.options)

  def reset(self, seed: int) -> Reply:
    """The rules and the first position."""
    try:
      self._game.reset(num_players=1, seed=seed)
    except (AssertionError, ValueError) as error:
      raise ValueError(
        f'TextArena: {self._task.name} is no game for one player: {error}'
      ) from None
    return Reply(self._said())

  def step(self, action: str) -> Reply:
    """What the game says, or its reward at the end."""
    done, _ = self._game.step(action=action)
    if not done:
      zero = {base.OUTCOME: 0.0, 'reward': 0.0}
      return Reply(self._said(), rewards=zero)
    rewards, _ = self._game.close()
    reward = float(rewards[0])
    solved = float(reward >= self._task.solved)
    return Reply(rewards={base.OUTCOME: solved, 'reward': reward}, done=True)

  def _said(self):
    """What is new, but for the player's own words."""
    _, messages = self._game.get_observation()
    own = 'PLAYER_ACTION'
    return ''.join(
      f'{text}\n' for _, text, kind in messages if kind.name != own
    )
