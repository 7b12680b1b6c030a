"""Stands in for textarena: a game for one player, of the global generator."""

import enum
import random
import types


class ObservationType(enum.Enum):
  """Whose words an observation has."""

  GAME_MESSAGE = 0
  PLAYER_ACTION = 1


class _Dice:
  """Each action is followed by a throw; the third one ends the game."""

  def reset(self, num_players, seed):
    """Throws once."""
    assert num_players == 1
    random.seed(seed)
    self.total = self.thrown = 0
    self.state = types.SimpleNamespace(observations={0: []})
    self.state.current_player_id = 0
    self._throw()

  def step(self, action):
    """(whether the game is over, info)."""
    said = (0, action, ObservationType.PLAYER_ACTION)
    self.state.observations[0].append(said)
    self._throw()
    return self.thrown > 3, {}

  def close(self):
    """(rewards by player, info)."""
    return {0: self.total / 24}, {}

  def _throw(self):
    number = random.randint(1, 6)
    self.total, self.thrown = self.total + number, self.thrown + 1
    said = (-1, f'a {number}', ObservationType.GAME_MESSAGE)
    self.state.observations[0].append(said)


def make(name, **options):
  """A game without wrappers."""
  assert name.endswith('-raw') and not options
  return _Dice()
