"""Responses on the host: read, decoded, and judged by their own process."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rl_jax.runtime import processes
from rl_jax.types import Trajectories


def decode_responses(
  traj_host: Any, tokenizer: Any, stop: Sequence[int]
) -> list[str]:
  """Text of every row without the token of `stop` that ended it."""
  texts = []
  for row, length in zip(
    traj_host['response'], traj_host['length'], strict=True
  ):
    ids = [int(t) for t in row[:length]]
    if ids and ids[-1] in stop:
      ids = ids[:-1]
    texts.append(tokenizer.decode(ids))
  return texts


def own_rows(num_prompts: int, group_size: int) -> slice:
  """The rows of the prompts that this process decodes and verifies."""
  own = processes.own(num_prompts)
  return slice(own.start * group_size, own.stop * group_size)


def fetch_responses(
  traj: Trajectories, num_prompts: int
) -> dict[str, np.ndarray]:
  """The host read of a generation round; there may be more prompts.

  response, logp: of this process' own rows of the first num_prompts. length,
  finished: of all rows, two numbers each.
  """
  every = {'length': traj.length_B, 'finished': traj.finished_B}
  own = {'response': traj.response_BT, 'logp': traj.logp_behaviour_BT}
  rows = own_rows(num_prompts, traj.group_size)
  if processes.count() == 1:  # in one read
    host = processes.read(every | own)
    return host | {name: host[name][rows] for name in own}
  return processes.read(every) | processes.fetch_rows(own, rows)


class Texts(Sequence):
  """The texts of own rows, each decoded when it is first asked for."""

  def __init__(
    self,
    host: dict[str, np.ndarray],
    own: slice,
    tokenizer: Any,
    stop: Sequence[int],
  ):
    self._host = {'response': host['response'], 'length': host['length'][own]}
    self._options = (tokenizer, stop)
    self._known: dict[int, str] = {}

  def __len__(self) -> int:
    return len(self._host['length'])

  def __getitem__(self, row: int) -> str:
    if row not in self._known:
      if not 0 <= row < len(self):
        raise IndexError(row)
      one = {name: x[row : row + 1] for name, x in self._host.items()}
      (self._known[row],) = decode_responses(one, *self._options)
    return self._known[row]
