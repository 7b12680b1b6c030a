"""Right responses to earlier prompts, and which of them a prompt is like."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from rl_jax.decoding.stop import Stop
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.tasks.base import Example

_NOTHING = -1  # no prompt, no token
_COUNTS = 256  # token ids are counted modulo this


class SolvedExamples:
  """The last right response to each prompt, in arrays of a checkpoint.

  Prompts are alike by the cosine of their token counts. A prompt is at its
  index modulo `places`: of two at one place the later one is kept.
  """

  name = 'solved'  # in checkpoints

  def __init__(
    self, prompts: PromptSet, stop: Stop, places: int, max_tokens: int
  ):
    self._prompts, self._stop = prompts, stop
    self._index_M = np.full(places, _NOTHING, np.int32)
    self._response_MT = np.full((places, max_tokens), _NOTHING, np.int32)
    self._counts_MC = np.zeros((places, _COUNTS), np.float32)

  @property
  def state(self) -> dict[str, np.ndarray]:
    """Returns what a checkpoint holds: copies, as it may be written later."""
    return {
      'index_M': self._index_M.copy(),
      'response_MT': self._response_MT.copy(),
    }

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    def read(x):
      return np.array(jax.device_get(x))

    self._index_M = read(value['index_M'])
    self._response_MT = read(value['response_MT'])
    for place in np.flatnonzero(self._index_M != _NOTHING):
      self._counts_MC[place] = self._counts(self._index_M[place])

  def add(self, index: int, ids: Sequence[int]) -> None:
    """Keeps a right response to the index-th prompt."""
    place = index % len(self._index_M)
    self._index_M[place] = index
    self._response_MT[place] = _NOTHING
    self._response_MT[place, : len(ids)] = ids
    self._counts_MC[place] = self._counts(index)

  def nearest(self, index: int, count: int) -> list[tuple[Example, str]]:
    """At most `count` pairs (example, right response), the nearest last."""
    others_M = (self._index_M != _NOTHING) & (self._index_M != index)
    cosine_M = np.where(others_M, self._counts_MC @ self._counts(index), -1.0)
    order_M = np.argsort(-cosine_M, kind='stable')[:count]
    found = []
    for place in order_M[others_M[order_M]][::-1]:
      ids = self._response_MT[place]
      text = self._stop.text(ids[ids != _NOTHING])
      found.append((self._prompts.example(int(self._index_M[place])), text))
    return found

  def _counts(self, index):
    """Returns how often the prompt has each token, of length 1."""
    example = self._prompts.example(int(index))
    prompt, mask, _ = self._prompts.arrays([example])
    counts_C = np.bincount(prompt[mask > 0] % _COUNTS, minlength=_COUNTS)
    return (counts_C / np.linalg.norm(counts_C)).astype(np.float32)
