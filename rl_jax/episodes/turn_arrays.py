"""Rewards, states, actions and costs of the turns of episodes, as arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl_jax.types import Turns


def turn_arrays(
  records: Sequence[dict[str, Any]],
  weights: Sequence[Mapping[str, float]],
  max_turns: int,
) -> Turns:
  """Arrays of all Player.record; states and actions are numbered by group.

  weights: of the components of rewards, for each group.
  """
  B, K = len(records), max_turns
  group_size = B // len(weights)
  found = {
    'reward': np.zeros((B, K), np.float32),
    'state': np.full((B, K), -1, np.int32),
    'action': np.full((B, K), -1, np.int32),
    'calls': np.zeros((B, K), np.int32),
    'duration': np.zeros((B, K), np.float32),
  }
  numbers: dict[tuple, int] = {}
  for row, record in enumerate(records):
    if row % group_size == 0:
      numbers.clear()
    own = weights[row // group_size]
    for k, rewards in enumerate(record['rewards']):
      total = sum(w * rewards.get(name, 0.0) for name, w in own.items())
      found['reward'][row, k] = total
    for name in ('calls', 'duration'):
      found[name][row, : len(record[name])] = record[name]
    for kind in ('state', 'action'):
      for k, name in enumerate(record[f'{kind}s']):
        if name is not None:
          number = numbers.setdefault((kind, name), len(numbers))
          found[kind][row, k] = number
  fields: dict[str, Any] = {f'{name}_BK': x for name, x in found.items()}
  return Turns(**fields)
