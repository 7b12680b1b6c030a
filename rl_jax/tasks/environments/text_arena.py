"""Games of TextArena, for one player or several."""

import dataclasses
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class TextArena(EnvironmentTask):
  """Episodes of `textarena.make(name, **options)`.

    TextArena(name='TowerOfHanoi-v0')
    TextArena(name='TicTacToe-v0', players=2)

  A game for another number of players is an error. Components of each player:
  `outcome`, 1 if the game's reward is at least `solved`, and `reward`, both at
  the end of the game. What others say is read with their number. A game draws
  from the global generators: processes exchange their states between the
  episodes that they hold.

  Raises: ValueError as above. Needs the extra 'games'.
  """

  name: str = 'TowerOfHanoi-v0'
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  players: int = ranged(1, 1)
  solved: float = 1.0
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  @property
  def traits(self) -> TaskTraits:
    """`players` is a field."""
    return TaskTraits(players=self.players)

  def prepare(self) -> None:
    """Imports the package once and begins a game, to check it."""
    self.make(self.example('train', 0)).reset(0)

  def make(self, example: Example) -> 'TextArenaEpisode':
    """A game that has not started."""
    return TextArenaEpisode(self)


class TextArenaEpisode(Environment):
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
    count = self._task.players
    try:
      self._game.reset(num_players=count, seed=seed)
    except (AssertionError, ValueError) as error:
      of = 'one player' if count == 1 else f'{count} players'
      raise ValueError(
        f'TextArena: {self._task.name} is not a game for {of}: {error}'
      ) from None
    return Reply(self._said(), acting=self._game.state.current_player_id)

  def step(self, action: str) -> Reply:
    """Returns what the game says, or its reward at the end."""
    done, _ = self._game.step(action=action)
    players, found = range(self._task.players), {}
    if done:
      found, _ = self._game.close()
    rewards = tuple(self._components(found.get(p, 0.0), done) for p in players)
    return Reply(
      self._said(),
      rewards=rewards[0] if len(rewards) == 1 else rewards,
      acting=0 if done else self._game.state.current_player_id,
      done=done,
    )

  def _components(self, reward, done):
    solved = done and reward >= self._task.solved
    return {base.OUTCOME: float(solved), 'reward': float(reward)}

  def _said(self):
    """Returns what is new to each player, but for its own words."""
    said = self._game.state.observations
    texts = []
    for player in range(self._task.players):
      messages, said[player] = said[player], []
      lines = [
        f'[Player {sender}] {text}' if sender >= 0 else text
        for sender, text, kind in messages
        if kind.name != 'PLAYER_ACTION' or sender not in (player, -1)
      ]
      texts.append(''.join(f'{line}\n' for line in lines))
    return texts[0] if len(texts) == 1 else tuple(texts)
