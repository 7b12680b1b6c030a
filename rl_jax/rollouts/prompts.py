"""The prompts of a task's split as padded token arrays, checked at start-up."""

from collections.abc import Callable, Sequence
from typing import Any

from absl import logging
import numpy as np

from rl_jax.checks import INT32
from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.tasks.base import PLACE, SPLITS, Example
from rl_jax.tasks.templates import encode_prompt

# Of larger splits some rows are checked at start, the others as they are drawn.
SCAN_LIMIT = 20_000
SPOT_CHECKS = 1000


class PromptSet:
  """Encodes examples of one split; over-long prompts are errors or skipped.

  `overlong` is 'error' (the row is named) or 'skip' (counted, and warned of).
  Splits of more than SCAN_LIMIT rows are checked at SPOT_CHECKS rows; where a
  row that is drawn later cannot be used, the next usable row takes its place,
  so that a run of many hours does not end because of it.
  Prompts are left-padded to the next power of two, so that few lengths are
  compiled; ids stay the task's own stable indices.
  """

  def __init__(
    self,
    task: Any,
    split: str,
    tokenizer: Any,
    max_prompt_tokens: int,
    overlong: str = 'error',
  ):
    self.task, self.split, self.tokenizer = task, split, tokenizer
    self.players = task.traits.players  # prompts that an index has in a batch
    self.max_prompt_tokens = max_prompt_tokens
    self._overlong, self._warnings = overlong, RepeatedWarnings()
    total = self._total = task.num_prompts(split)
    if total < 1:
      known = {name: task.num_prompts(name) for name in SPLITS}
      others = ', '.join(f'{n}: {size}' for n, size in known.items() if size)
      more = '; an evaluation reads it: hold rows out for it (num_validation)'
      more += ', or set evaluation.split or evaluation.every=0'
      raise ValueError(
        f'{type(task).__name__}: split {split!r} is empty; prompts of others: '
        f'{others or "none"}{more * (split != "train")}'
      )
    if total > INT32:
      raise ValueError(
        f'{type(task).__name__}: split {split!r} has {total} prompts, more '
        f'than {INT32}'
      )
    self._ids = None
    checked = self._checked_ids()
    usable = self._fit(self._example(i) for i in checked)
    fits = [i for i, one in zip(checked, usable, strict=True) if one]
    if not fits:
      which = (
        'no prompt' if len(checked) == total else f'none of {len(checked)}'
      )
      raise ValueError(
        f'{which} of split {split!r} has at most '
        f'rollout.max_prompt_tokens = {max_prompt_tokens} tokens'
      )
    if len(fits) < len(checked):
      logging.warning(
        'skipped %d of %d over-long prompts of split %r',
        len(checked) - len(fits),
        len(checked),
        split,
      )
      if len(checked) == total:
        self._ids = np.asarray(fits, np.int32)

  def __len__(self) -> int:
    return self._total if self._ids is None else len(self._ids)

  def check(self, change: Callable[[Example], Example]) -> None:
    """Raises or warns, as for prompts, of prompts that a change makes too long.

    Raises:
      OverlongPromptError: names one that `overlong` does not allow.
      ValueError: none of the changed prompts can be used.
    """
    ids = [self.example_id(i) for i in self._spots(len(self))]
    fits = self._fit(change(self._example(i)) for i in ids)
    if not any(fits):
      raise ValueError(
        f'none of {len(ids)} changed prompts of split {self.split!r} has at '
        f'most rollout.max_prompt_tokens = {self.max_prompt_tokens} tokens'
      )
    if not all(fits):
      logging.warning(
        '%d of %d changed prompts of split %r are over-long',
        len(ids) - sum(fits),
        len(ids),
        self.split,
      )

  def _checked_ids(self):
    if self._total <= SCAN_LIMIT:
      return range(self._total)
    return self._spots(self._total)

  def _spots(self, total):
    return range(0, total, -(-total // SPOT_CHECKS))

  def _example(self, example_id):
    return self.task.example(self.split, example_id)

  def _fit(self, examples):
    """For each at start, whether it fits.

    Raises: the error of the first one that is too long and may not be left
      out; of several with their number and the largest length.
    """
    fits, errors = [], []
    for example in examples:
      try:
        fits.append(self._usable(example))
      except OverlongPromptError as error:
        errors.append(error)
    if len(errors) > 1:
      longest = max(error.tokens for error in errors)
      raise OverlongPromptError(
        f'{errors[0]}; of {len(fits) + len(errors)} prompts {len(errors)} are '
        f'too long, the longest has {longest} tokens',
        longest,
      )
    if errors:
      raise errors[0]
    return fits

  def _usable(self, example):
    """Returns whether the prompt fits; raises, if so configured, where it does
    not.
    """
    try:
      self._encode(example)
    except OverlongPromptError:
      if self._overlong == 'error':
        raise
      return False
    return True

  def fits(self, example: Example) -> bool:
    """Returns whether a prompt can be used; a warning says why not."""
    try:
      self._encode(example)
    except ValueError as error:
      self._warnings.warn('a prompt is not used: %s', error)
      return False
    return True

  def example_id(self, index: int) -> int:
    """The task's own index of the index-th usable prompt."""
    return int(index if self._ids is None else self._ids[index])

  def encode_one(self, example_id: int) -> list[int]:
    """Token ids of one prompt; raises if it is empty or too long."""
    return self._encode(self._example(example_id))

  def where(self, example: Example) -> str:
    """Task, split and index, and where data have it."""
    name = f'{type(self.task).__name__} {self.split}[{example.id}]'
    place = example.meta.get(PLACE)
    return f'{name} ({place})' if place else name

  def _encode(self, example: Example) -> list[int]:
    where = self.where(example)
    try:
      ids = encode_prompt(example, self.tokenizer)
    except ValueError as error:
      raise ValueError(f'{where}: {error}') from error
    if not ids:
      raise ValueError(f'{where}: the prompt is empty')
    if len(ids) > self.max_prompt_tokens:
      raise OverlongPromptError(
        f'{where}: the prompt has {len(ids)} tokens, more than '
        f'rollout.max_prompt_tokens = {self.max_prompt_tokens}; raise it, or '
        "set rollout.overlong_prompt='skip'",
        len(ids),
      )
    return ids

  def example(self, index: int) -> Example:
    """The index-th usable example; the next one that fits if it does not.

    Raises:
      ValueError: no prompt fits.
    """
    for step in range(len(self)):
      example = self._example(self.example_id((index + step) % len(self)))
      if self.fits(example):
        return example
    raise ValueError(f'no prompt of split {self.split!r} can be used')

  def batch(
    self, indices: Sequence[int] | np.ndarray
  ) -> tuple[list[Any], np.ndarray, np.ndarray, np.ndarray]:
    """(examples, prompt_NP i32, prompt_mask_NP f32, prompt_id_N i32)."""
    examples = [self.example(i) for i in indices]
    return examples, *self.arrays(examples)

  def arrays(
    self, examples: Sequence[Example]
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(prompt_NP i32, prompt_mask_NP f32, prompt_id_N i32)."""
    tokens = [self._encode(example) for example in examples]
    longest = max(len(t) for t in tokens)
    width = min(1 << (longest - 1).bit_length(), self.max_prompt_tokens)
    prompt = np.full((len(tokens), width), self.tokenizer.pad_id, np.int32)
    mask = np.zeros((len(tokens), width), np.float32)
    for row, t in enumerate(tokens):
      prompt[row, width - len(t) :] = t
      mask[row, width - len(t) :] = 1.0
    ids = np.asarray([example.id for example in examples], np.int32)
    return prompt, mask, ids


class OverlongPromptError(ValueError):
  """A prompt has more tokens than the configuration allows.

  tokens: how many it has; 0 if that is not said.
  """

  def __init__(self, text: str, tokens: int = 0):
    super().__init__(text)
    self.tokens = tokens
