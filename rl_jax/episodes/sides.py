"""The rows that one policy plays, while their episodes continue."""

import dataclasses
from typing import Any

import numpy as np

from rl_jax.episodes.players import Player
from rl_jax.runtime import processes


@dataclasses.dataclass
class Side:
  """The rows that one policy plays, and their state on the device.

  players: of own rows. The others are of all rows. begun: tokens before this
  turn and its observation; given: with it. turns: that they have had. context:
  where what they see of their tokens begins; context_BT: what each token saw.
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
  context_B: np.ndarray = dataclasses.field(init=False)
  context_BT: np.ndarray = dataclasses.field(init=False)

  def __post_init__(self):
    self.context_B = np.zeros_like(self.begun_B)
    self.context_BT = np.zeros_like(self.turn_BT)


def gathered(values: list[Any]) -> list[Any]:
  """The values of the rows of all processes, in order."""
  return [value for part in processes.gather(values) for value in part]
