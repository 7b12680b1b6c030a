"""Stands in for gymnasium: one environment, and what others register."""

import random
import types

import numpy as np

registry = {}


class Text:
  """A space of words."""

  def contains(self, text):
    """Only texts of small letters are contained."""
    return text.islower()


class Discrete:
  """A space of n numbers."""

  def __init__(self, n):
    self.start, self.n = 0, n


class _Line:
  """From 0 to 3; steps cost 1, the last one is worth 5."""

  initial_state_distrib = np.array([1.0, 0.0, 0.0, 0.0])

  def __init__(self, actions=4, is_slippery=False, render_mode=None):
    del render_mode
    self.action_space = Text() if actions == 'text' else Discrete(actions)
    self.is_slippery = is_slippery

    # Only 2 moves.
    def step(place, to):
      return (1.0, to, 5.0 if to == 3 else -1.0, to == 3)

    self.P = {
      place: {
        a: [step(place, place + (a == 2 and place < 3))] for a in range(4)
      }
      for place in range(4)
    }

  @property
  def unwrapped(self):
    """Itself."""
    return self

  def reset(self, seed):
    """At 0."""
    self.place, self.random = 0, random.Random(seed)
    return self.place, {}

  def step(self, action):
    """2 is to the right."""
    moves = not self.is_slippery or self.random.random() < 0.5
    self.place += int(moves and action in (2, 'right'))
    done = self.place == 3
    return self.place, 5.0 if done else -1.0, done, self.place < 0, {}

  def render(self):
    """With a mark as terminals have it."""
    return f'a\x1b[41m{self.place}\x1b[0mb'

  def close(self):
    """Nothing."""


spaces = types.SimpleNamespace(Text=Text, Discrete=Discrete)


def make(name, **options):
  """An environment, which gets what is given, as in the package."""
  return registry.get(name, _Line)(**options)
