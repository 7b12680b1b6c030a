"""Prompts that end with what an environment says first."""

from collections.abc import Callable, Sequence
import contextlib
from typing import Any

import numpy as np

from rl_jax.rollouts.prompts import PromptSet
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import opened, seed_of

_FIRST = 4  # episodes that are begun at start
_MOST = 4096  # beginnings that are kept


class EpisodePrompts(PromptSet):
  """Prompts that end with the first observations of episodes.

  begin: examples -> the examples with them; ValueError if one does not begin.
  A few are opened at start, the others as they are drawn.
  """

  def __init__(
    self,
    task: Any,
    split: str,
    tokenizer: Any,
    max_prompt_tokens: int,
    overlong: str = 'error',
    *,
    begin: Callable[[Sequence[Example]], list[Example]],
  ):
    self._begin, self._opened = begin, {}
    super().__init__(task, split, tokenizer, max_prompt_tokens, overlong)

  def batch(
    self, indices: Sequence[int]
  ) -> tuple[list[Any], np.ndarray, np.ndarray, np.ndarray]:
    """See PromptSet; of a game the prompts of all players, side by side.

    Those that are new are opened in one call.
    """
    ids = dict.fromkeys(map(self.example_id, indices))
    new = [i for i in ids if i not in self._opened]
    if len(self._opened) + len(new) > _MOST:
      self._opened.clear()
      new = list(ids)
    examples = [super(EpisodePrompts, self)._example(i) for i in new]
    with contextlib.suppress(ValueError):  # then one by one
      self._opened |= zip(new, self._begin(examples), strict=True)
    first = [self.example(i) for i in indices]
    examples = [one for example in first for one in _players(example)]
    return examples, *self.arrays(examples)

  def fits(self, example: Example) -> bool:
    """Whether the prompts of all players can be used."""
    return all(super(EpisodePrompts, self).fits(x) for x in _players(example))

  def _usable(self, example):
    usable = super()._usable
    return all(usable(one) for one in _players(example))

  def _checked_ids(self):
    return range(min(self._total, _FIRST))

  def _example(self, example_id):
    if example_id not in self._opened:
      (found,) = self._begin([super()._example(example_id)])
      self._opened[example_id] = found
    return self._opened[example_id]


def begun(task: Any) -> Callable:
  """Examples -> the same with the first observations of their episodes.

  In this process: for environments that answer on the device, too.
  """

  def begin(examples):
    said = (task.make(one).reset(seed_of(one)).observation for one in examples)
    return [opened(*pair, False) for pair in zip(examples, said, strict=True)]

  return begin


def _players(example):
  return (example, *example.others)
