"""Prompts that end with what an environment says first."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rl_jax.episodes.journal import Kept
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import Opened, opened, seed_of

_FIRST = 4  # episodes that are open at the start
_MOST = 4096  # answers of beginnings that are kept


class EpisodePrompts(PromptSet):
  """Prompts that end with the first observations of episodes.

  begin: (examples, what was said before) -> the examples with them. A few are
  opened at start, the others as they are drawn. An episode that does not begin
  keeps its place: its rows, which have one token for a prompt, fail.

  Raises: ValueError if none of those at start begins.
  """

  def __init__(
    self,
    task: Any,
    split: str,
    tokenizer: Any,
    max_prompt_tokens: int,
    overlong: str = 'error',
    *,
    begin: Callable[[Sequence[Example], Kept], list[Opened]],
  ):
    self._begin = begin
    self._kept: Kept = {}
    self._opened: dict[int, Opened] = {}  # of the newest batch
    super().__init__(task, split, tokenizer, max_prompt_tokens, overlong)
    first = list(self._opened.values())
    failures = [one.failure for one in first if one.failure]
    if len(failures) == len(first):
      kind, detail = failures[0]
      raise ValueError(
        f'{type(task).__name__}: none of {len(first)} episodes of split '
        f'{split!r} begins; the first one, seed {seed_of(first[0])}: {kind}: '
        f'{detail.strip()[-500:]}'
      )

  def batch(
    self, indices: Sequence[int] | np.ndarray
  ) -> tuple[list[Any], np.ndarray, np.ndarray, np.ndarray]:
    """See PromptSet; of a game the prompts of all players, side by side.

    They are opened in one call.
    """
    if len(self._kept) > _MOST:
      self._kept.clear()
    self._opened = self._open(dict.fromkeys(map(self.example_id, indices)))
    first = [self.example(i) for i in indices]
    examples = [one for example in first for one in _players(example)]
    return examples, *self.arrays(examples)

  def fits(self, example: Example) -> bool:
    """Returns whether the prompts of all players can be used."""
    return all(super(EpisodePrompts, self).fits(x) for x in _players(example))

  def _usable(self, example):
    usable = super()._usable
    return all(usable(one) for one in _players(example))

  def _checked_ids(self):
    ids = range(min(self._total, _FIRST))
    self._opened = self._open(ids)
    return ids

  def _example(self, example_id):
    if example_id not in self._opened:
      self._opened |= self._open([example_id])
    return self._opened[example_id]

  def _open(self, ids):
    examples = [super(EpisodePrompts, self)._example(i) for i in ids]
    return dict(zip(ids, self._begin(examples, self._kept), strict=True))

  def _encode(self, example):
    if example.failure:
      return [self.tokenizer.pad_id]
    return super()._encode(example)


def begun(task: Any) -> Callable:
  """Examples -> the same with the first observations of their episodes.

  In this process: for environments that answer on the device, too.
  """

  def begin(examples, kept):
    del kept
    return [opened(one, said(one), False) for one in examples]

  def said(example):
    episode = task.start(example)
    observation = episode.reset(seed_of(example)).observation
    episode.close()
    return observation

  return begin


def _players(example):
  return (example, *example.others)
