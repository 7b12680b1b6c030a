"""Episodes that continue: their recorded turns are taken again."""

import dataclasses
from typing import Any

import numpy as np

from rl_jax.episodes.players import Player
from rl_jax.episodes.turns import TurnFormat
from rl_jax.types import ENVIRONMENT, PAD


@dataclasses.dataclass(frozen=True)
class Recorded:
  """Rows on the host that wait inside a turn, the open one.

  live_B: rows that continue; the others take no part. Of these the open turn is
  the last that a token has; all turns before it were taken.
  """

  response_BT: np.ndarray
  kind_BT: np.ndarray
  turn_BT: np.ndarray
  live_B: np.ndarray

  @property
  def open_B(self) -> np.ndarray:
    """The turn that each row is in; 0 where it does not continue."""
    last_B = np.where(self.kind_BT != PAD, self.turn_BT, 0).max(axis=1)
    return np.where(self.live_B, last_B, 0).astype(np.int32)

  @property
  def begun_B(self) -> np.ndarray:
    """Tokens before the open turn and its observation."""
    return self._before(self.turn_BT < self.open_B[:, None])

  @property
  def given_B(self) -> np.ndarray:
    """Tokens before the open turn, with its observation."""
    earlier_BT = self.turn_BT < self.open_B[:, None]
    return self._before(earlier_BT | (self.kind_BT == ENVIRONMENT))

  def _before(self, here_BT):
    here_BT = here_BT & (self.kind_BT != PAD) & self.live_B[:, None]
    return here_BT.sum(axis=1).astype(np.int32)

  @property
  def length_B(self) -> np.ndarray:
    """Tokens of each row."""
    return (self.kind_BT != PAD).sum(axis=1).astype(np.int32)

  def turns(self, row: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(what was done, what was said to it) in each turn before the open one."""
    return [
      (self.ids(row, k, observed=False), self.ids(row, k + 1, observed=True))
      for k in range(self.open_B[row])
    ]

  def spans(self, row: int) -> list[tuple[int, int]]:
    """Returns where each turn starts and stops; not the open one."""
    there_T = self.kind_BT[row] != PAD
    stop = self.open_B[row]
    if not self.live_B[row]:
      stop = self.turn_BT[row].max() + 1
    found = [
      np.flatnonzero(there_T & (self.turn_BT[row] == k)) for k in range(stop)
    ]
    return [(int(x[0]), int(x[-1]) + 1) for x in found]

  def ids(self, row: int, turn: int, observed: bool) -> np.ndarray:
    """Tokens of one turn: its observation, or what was done."""
    here_T = (self.turn_BT[row] == turn) & (self.kind_BT[row] != PAD)
    return self.response_BT[
      row, here_T & ((self.kind_BT[row] == ENVIRONMENT) == observed)
    ]


def compare(player: Player, ids: np.ndarray, form: TurnFormat) -> None:
  """Fails an episode that did not say `ids`."""
  episode = player.episode
  if episode.failure is not None:
    return
  said: list[Any] = []
  if player.acts():
    said = [form.observation(player.heard(), cut)[0] for cut in (False, True)]
  if ids.tolist() not in said:
    text = 'a recorded turn was repeated and answered in another way'
    episode.failure = ('mismatch', text)
