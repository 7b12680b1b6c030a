"""Games of OpenSpiel for two or more players, as text."""

import dataclasses
import random
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class OpenSpiel(EnvironmentTask):
  """Episodes of `pyspiel.load_game(name, options)`, played by all players.

    OpenSpiel(name='kuhn_poker', alphabet='012pb>')

  A player reads its information state of OpenSpiel, which is what it knows, and
  then only what is new of it, each followed by '>'; its number comes first. It
  writes an action in OpenSpiel's words in lower case, or (`letters`) the first
  letter of it; where letters do not choose among the actions, the game is an
  error. Any other text ends the game: `illegal_reward` for its player and
  `spared_reward` for the others.
  Components: `reward`, the return of the game, `outcome`, 1 if it is positive,
  and `illegal`.
  Source: OpenSpiel; rewards of illegal actions as in "SPIRAL: Self-Play on
  Zero-Sum Games Incentivizes Reasoning via Multi-Agent Multi-Turn Reinforcement
  Learning".

  Raises: ValueError for a game with simultaneous moves, or as above. Needs the
  extra 'games'.
  """

  name: str = 'kuhn_poker'
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  players: int = ranged(2, 2)
  alphabet: str | tuple[str, ...] = '012pb>'  # characters or pieces
  letters: bool = True
  illegal_reward: float = -1.5
  spared_reward: float = 0.5
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  @property
  def traits(self) -> TaskTraits:
    """`players` is a field."""
    return TaskTraits(players=self.players, global_random=False)

  def prepare(self) -> None:
    """Imports the package once and checks the game."""
    game = self.load()
    if game.num_players() != self.players:
      raise ValueError(
        f'OpenSpiel.players = {self.players}, but {self.name} has '
        f'{game.num_players()} players'
      )
    if game.get_type().dynamics.name != 'SEQUENTIAL':
      raise ValueError(f'OpenSpiel: {self.name} has simultaneous moves')
    begun = OpenSpielEpisode(self)
    begun.reset(0)
    begun.names()

  def load(self) -> Any:
    """The game of pyspiel."""
    try:
      import pyspiel
    except ImportError as error:
      raise ImportError(
        "OpenSpiel needs the extra 'games': pip install 'rl_jax[games]'"
      ) from error
    return pyspiel.load_game(self.name, self.options)

  def make(self, example: Example) -> 'OpenSpielEpisode':
    """A game that has not started."""
    return OpenSpielEpisode(self)


class OpenSpielEpisode(Environment):
  """One game."""

  def __init__(self, task: OpenSpiel):
    self._task = task
    self._state = task.load().new_initial_state()

  def reset(self, seed: int) -> Reply:
    """Deals, and tells each player its number and what it knows."""
    self._random = random.Random(seed)
    self._known = [''] * self._task.players
    observed = tuple(f'{p}{text}' for p, text in enumerate(self._deal()))
    return Reply(observed, acting=self._acting(), state=self._seen())

  def step(self, action: str) -> Reply:
    """The action of the player whose turn it is."""
    names = self.names()
    players, mover = range(self._task.players), self._state.current_player()
    if action not in names:
      rewards = [self._task.spared_reward] * len(players)
      rewards[mover] = self._task.illegal_reward
      illegal = [float(p == mover) for p in players]
      return self._end(rewards, illegal)
    self._state.apply_action(names[action])
    self._known[mover] = self._state.information_state_string(mover)
    observed = self._deal()
    if self._state.is_terminal():
      return self._end(self._state.returns(), [0.0] * len(players), action)
    return Reply(
      tuple(observed),
      acting=self._acting(),
      state=self._seen(),
      action=action,
    )

  @property
  def commands(self) -> tuple[str, ...]:
    """Returns what the next player may write."""
    return tuple(self.names())

  def names(self) -> dict[str, int]:
    """Numbers of what the next player may write."""
    return action_names(self._task, self._state)

  def _end(self, returns, illegal, action=''):
    parts = zip(returns, illegal, strict=True)
    return Reply(
      ('',) * len(illegal),
      rewards=tuple(
        {base.OUTCOME: float(x > 0), 'reward': float(x), 'illegal': wrong}
        for x, wrong in parts
      ),
      done=True,
      action=action,
    )

  def _deal(self):
    """Draws of chance, and what each player hears until the next decision."""
    while self._state.is_chance_node():
      actions, chances = zip(*self._state.chance_outcomes(), strict=True)
      (drawn,) = self._random.choices(actions, chances)
      self._state.apply_action(drawn)
    return news(self._state, self._known)

  def _acting(self):
    return self._state.current_player()

  def _seen(self):
    return self._state.information_state_string(self._acting())


def news(state: Any, known: list[str]) -> list[str]:
  """Returns what is new to each player, '' if nothing is; `known` is brought up
  to it.

  known: information states that a player has observed or made.
  """
  found = []
  for player, before in enumerate(known):
    now = known[player] = state.information_state_string(player)
    new = now.removeprefix(before)
    found.append(f'{new}>' if new else '')
  return found


def action_names(task: OpenSpiel, state: Any) -> dict[str, int]:
  """Numbers of the legal actions by what a player writes.

  Raises: ValueError if two have one name.
  """
  player, names = state.current_player(), {}
  for action in state.legal_actions():
    name = state.action_to_string(player, action).lower()
    names[name[:1] if task.letters else name] = action
  if len(names) < len(state.legal_actions()):
    raise ValueError(
      f'OpenSpiel: actions of {task.name} share their first letters: set '
      'letters=False'
    )
  return names
