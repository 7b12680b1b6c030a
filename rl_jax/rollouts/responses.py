"""Responses on the host: read, decoded, and judged by their own process."""

from collections.abc import Sequence
from typing import Any
import zlib

import numpy as np

from rl_jax.runtime import processes
from rl_jax.types import Trajectories
from rl_jax.verification.pool import Outcome


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


def verify_own(
  verifier: Any, examples: Sequence[Any], texts: Texts, group_size: int
) -> list[Outcome]:
  """Outcomes of all rows of `examples`; texts: of this process' own rows.

  Each process decodes and judges the rows of its own prompts.
  """
  own = own_rows(len(examples), group_size)
  rows = range(own.start, own.stop)
  outcomes = verifier.reward(
    [examples[row // group_size] for row in rows], list(texts)
  )
  if processes.count() == 1:
    return outcomes
  ids = zlib.crc32(repr([e.id for e in examples]).encode())
  mine = [[o.components, o.kind, o.detail] for o in outcomes]
  parts = processes.gather([ids, mine])
  if any(other != ids for other, _ in parts):
    raise RuntimeError(
      'the processes drew different prompts: is the data the same on all hosts?'
    )
  return [Outcome(*o) for _, part in parts for o in part]
