"""Responses on the host: read, decoded, and judged by their own process."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from rl_jax.decoding.stop import Stop
from rl_jax.runtime import processes
from rl_jax.types import Trajectories


def own_rows(num_prompts: int, group_size: int) -> slice:
  """The rows of the prompts that this process decodes and verifies."""
  own = processes.own(num_prompts)
  return slice(own.start * group_size, own.stop * group_size)


def fetch_responses(
  traj: Trajectories, num_prompts: int, rows: slice | None = None
) -> dict[str, np.ndarray]:
  """The host read of a generation round; there may be more prompts.

  response, logp: of this process' own rows of the first num_prompts, or of the
  given ones. length, finished, sampled (tokens of the policy): of all rows, a
  number each.
  """
  every = {'length': traj.length_B, 'finished': traj.finished_B}
  if traj.turn_BT is not None or traj.extras:  # rows may have been started
    every['sampled'] = _row_sums(traj.mask_BT)
  own = {'response': traj.response_BT, 'logp': traj.logp_behaviour_BT}
  if rows is None:
    rows = own_rows(num_prompts, traj.group_size)
  if processes.count() == 1:  # in one read
    host = processes.read(every | own)
    host |= {name: host[name][rows] for name in own}
  else:
    host = processes.read(every) | processes.fetch_rows(own, rows)
  return {'sampled': host['length'], **host}


@jax.jit
def _row_sums(x_BT):
  return x_BT.sum(axis=1)


class Texts(Sequence):
  """The texts of own rows, each decoded when it is first asked for."""

  def __init__(
    self,
    host: dict[str, np.ndarray],
    own: slice,
    stop: Stop,
  ):
    self._response, self._length = host['response'], host['length'][own]
    self._stop = stop
    self._known: dict[int, str] = {}

  def __len__(self) -> int:
    return len(self._length)

  def __getitem__(self, row: Any) -> str:
    if row not in self._known:
      if not 0 <= row < len(self):
        raise IndexError(row)
      ids = self._response[row][: self._length[row]]
      self._known[row] = self._stop.text(ids)
    return self._known[row]
