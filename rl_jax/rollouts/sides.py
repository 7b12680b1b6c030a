"""The rows that one policy plays, while their episodes go on."""

import dataclasses
from typing import Any

import numpy as np

from rl_jax.rollouts.players import Player
from rl_jax.runtime import processes


@dataclasses.dataclass
class Side:
  """The rows that one policy plays, and their state on the device.

  players: of own rows. The others are of all rows. begun: tokens before this
  turn and its observation; given: with it. turns: that they have had.
  """

  players: list[Player]
  weights: Any
  playing: Any
  tokens: Any
  live_B: np.ndarray
  begun_B: np.ndarray
  given_B: np.ndarray
  turns_B: np.ndarray
  turn_BT: np.ndarray


def gathered(values: list[Any]) -> list[Any]:
  """Of the rows of all processes, in order."""
  return [value for part in processes.gather(values) for value in part]
