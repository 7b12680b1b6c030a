"""Prompts of several data sets in fixed shares, each with its own selector."""

import bisect
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import jax
import numpy as np

from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.types import GroupSummary


class MixedSelector:
  """The interface of HostSelector over data sets that lie one after the other.

    k_{n+1} = argmax_k w_k (n + 1) - d_k        the first of equal ones

  after n draws, d_k of them from data set k, with sum_k w_k = 1: |d_k - w_k n|
  does not grow with n, and is below 1 for two data sets. The state is d and the
  states of the selectors; with one data set it is that selector.
  """

  memory = None

  def __init__(
    self,
    selector: Any,
    sizes: Mapping[str, int],
    weights: Mapping[str, float],
    key: jax.Array,
  ):
    """sizes: of the data sets, in order. Raises ValueError if one is empty."""
    check_sizes(sizes)
    self._names = tuple(sizes)
    self._starts = [0, *accumulate(sizes.values())]
    total = sum(weights.values())
    self._share_K = np.asarray([weights[name] / total for name in sizes])
    self._drawn_K = np.zeros(len(sizes), np.int32)
    self._selectors = [
      HostSelector(selector, size, jax.random.fold_in(key, k) if k else key)
      for k, size in enumerate(sizes.values())
    ]

  @property
  def state(self) -> dict[str, Any]:
    """Returns what a checkpoint holds."""
    states = [selector.state for selector in self._selectors]
    parts = dict(zip(self._names, states, strict=True))
    return {'drawn': self._drawn_K, 'parts': parts}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    self._drawn_K = np.array(value['drawn'])
    for name, selector in zip(self._names, self._selectors, strict=True):
      selector.state = value['parts'][name]

  def select(self, count: int) -> np.ndarray:
    """Indices of the next prompts; moves the state on."""
    part_N = np.empty(count, np.int32)
    drawn_K = self._drawn_K.copy()
    for n in range(count):
      deficit_K = self._share_K * (int(drawn_K.sum()) + 1) - drawn_K
      part_N[n] = np.argmax(deficit_K)
      drawn_K[part_N[n]] += 1
    ids = np.empty(count, np.int32)
    for k, mine_N in self._by_part(part_N):
      own = self._selectors[k].select(int(mine_N.sum()))
      ids[mine_N] = self._starts[k] + own
    self._drawn_K = drawn_K
    return ids

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """Gives every selector the outcomes of its own prompts."""
    part_N = np.searchsorted(self._starts, ids, side='right') - 1
    for k, mine_N in self._by_part(part_N):
      own = jax.tree.map(lambda x, mine_N=mine_N: x[mine_N], summary)
      self._selectors[k].observe(ids[mine_N] - self._starts[k], own)

  def _by_part(self, part_N):
    return [(int(k), part_N == k) for k in np.unique(part_N)]


def check_sizes(sizes: Mapping[str, int]) -> None:
  """Raises ValueError naming a part of a mixture without a usable prompt."""
  for name, size in sizes.items():
    if size < 1:
      raise ValueError(f'{name!r} has no prompt that can be used')


def usable_sizes(prompts: Any) -> dict[str, int]:
  """Usable prompts of each part of a mixture, by name."""
  task = prompts.task
  ends = accumulate(task.sizes(prompts.split))
  places = [
    bisect.bisect_left(range(len(prompts)), end, key=prompts.example_id)
    for end in ends
  ]
  names = [part.name for part in task.parts]
  return dict(zip(names, np.diff([0, *places]).tolist(), strict=True))
