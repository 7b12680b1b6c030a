"""Stands in for minigrid: a ball on a line of random length."""

import enum
import types

import gymnasium
import numpy as np


class Actions(enum.IntEnum):
  """Some of the package's."""

  left = 0
  forward = 2
  pickup = 3


class Grid:
  """The ball is ahead; near by it can be taken, which ends the episode."""

  actions, mission, carrying = Actions, 'pick up the ball', None
  instrs, front_pos = 'of BabyAI', (0, 1)

  @property
  def unwrapped(self):
    """Itself."""
    return self

  @property
  def grid(self):
    """The grid of objects, which is the environment itself."""
    return self

  def get(self, x, y):
    """The object at a place; in front of the agent the ball when it is near."""
    ball = types.SimpleNamespace(color='red', type='ball')
    return ball if self.away == 1 and (x, y) == self.front_pos else None

  def reset(self, seed):
    """The seed says how far away the thing is."""
    self.away = int(np.random.default_rng(seed).integers(1, 3))
    self.carrying = None
    return self._seen(), {}

  def step(self, action):
    """Continues, or takes."""
    if action == Actions.forward and self.away > 1:
      self.away -= 1
    if action == Actions.pickup and self.away == 1:
      self.carrying = types.SimpleNamespace(color='red', type='ball')
    ended = self.carrying is not None
    return self._seen(), 0.9 * ended, ended, False, {}

  def hash(self, size):
    """A hash of what is seen."""
    return f'{self.away}'[:size]

  def close(self):
    """Nothing."""

  def _seen(self):
    image = np.zeros((3, 3, 3), int)
    if self.carrying is None:
      image[1, 2 - self.away] = 6, 0, 0
    return {'image': image, 'mission': self.mission}


gymnasium.registry['BabyAI-GoToObj-v0'] = Grid
