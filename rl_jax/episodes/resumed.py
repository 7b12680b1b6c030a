"""Episodes that continue: their recorded turns are repeated."""

from collections.abc import Callable
import dataclasses
from typing import Any

import numpy as np

from rl_jax.decoding.stop import Stop
from rl_jax.episodes.players import Episode, Player
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

  def ids(self, row: int, turn: int, observed: bool) -> np.ndarray:
    """Tokens of one turn: its observation, or what was done."""
    here_T = (self.turn_BT[row] == turn) & (self.kind_BT[row] != PAD)
    return self.response_BT[
      row, here_T & ((self.kind_BT[row] == ENVIRONMENT) == observed)
    ]


def repeat(
  recorded: Recorded,
  players: list[Player],
  rows: range,
  ask: Callable[[list[Episode]], None],
  stop: Stop,
  form: TurnFormat,
) -> None:
  """Takes the turns before the open one again.

  players: of `rows`; each is the only player of its episode, which has started.
  An episode that says something else, or ends sooner, fails as a `mismatch`.
  """
  open_B = recorded.open_B
  pairs = list(zip(rows, players, strict=True))
  for k in range(int(open_B.max(initial=0))):
    acting = [(row, player) for row, player in pairs if k < open_B[row]]
    acting = [pair for pair in acting if pair[1].acts()]
    for row, player in acting:
      player.act(stop.text(recorded.ids(row, k, observed=False)))
    ask([player.episode for _, player in acting])
    for row, player in acting:
      _compare(player, recorded.ids(row, k + 1, observed=True), form)


def _compare(player: Player, ids: np.ndarray, form: TurnFormat) -> None:
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
