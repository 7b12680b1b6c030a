"""Tasks in another language: the same problems in other symbols."""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.tasks.wrapped import Wrapped


@dataclasses.dataclass(frozen=True)
@checked
class Relabelled(Wrapped):
  """A task of plain texts whose symbols are written as `letters`.

    prompt = tag + translated prompt,  '12+9=' -> 'Bbc+j=' with a, b, .. for 0..

  symbols[i] becomes letters[i]; a letter that is not a symbol becomes a symbol
  that is not a letter, in this order, so that no two texts become the same.
  Responses are translated back and judged by the task. With `error` each of
  their symbols is first mistaken for another one with this chance, by the hash
  of seed, prompt and response: the judge reads a bad translation.
  Source: Okapi, whose languages and translations this stands for; ours.
  """

  # They read or write the task's own symbols.
  not_passed: ClassVar[tuple[str, ...]] = tuple(
    name for name in base.OPTIONAL if name not in ('reward', 'target')
  )

  task: Any
  letters: str = '0123456789'
  tag: str = ''
  symbols: str = '0123456789'
  error: float = ranged(0.0, 0.0, 1.0)
  seed: int = 0

  def __post_init__(self):
    super().__post_init__()
    for name, text in (('symbols', self.symbols), ('letters', self.letters)):
      if not text or len(set(text)) < len(text):
        raise ValueError(
          f'Relabelled.{name} = {text!r}: expected characters, each once'
        )
    if len(self.letters) != len(self.symbols):
      raise ValueError(
        f'Relabelled.letters = {self.letters!r}: expected as many as symbols = '
        f'{self.symbols!r}'
      )
    if self.error and len(self.symbols) < 2:
      raise ValueError(
        f'Relabelled.error = {self.error}: {self.symbols!r} is one symbol, '
        'which cannot be mistaken'
      )

  @property
  def alphabet(self) -> str | None:
    """The task's alphabet, translated, and the tag; None if it has none."""
    known = self.task.alphabet
    if known is None:
      return None
    return ''.join(sorted({*self._written(''.join(known)), *self.tag}))

  def as_read(self, text: str) -> str:
    """The text translated back, as a person reads it in the task."""
    return self.task.as_read(self._read(text))

  def example(self, split: str, index: int) -> Example:
    """The task's, translated; ValueError for a conversation or a prefill."""
    example = self.task.example(split, index)
    if example.messages or example.prefill or example.parts:
      raise ValueError(
        f'Relabelled.task: {type(self.task).__name__} has prompts that are '
        'more than a text'
      )
    return dataclasses.replace(
      example,
      prompt=self.tag + self._written(example.prompt),
      answer=self._written(example.answer),
    )

  def target(self, example: Example) -> str:
    """The task's target, translated."""
    return self._written(self.task.target(self._inner(example)))

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The task's rewards for the response translated back."""
    text = self._read(response)
    if self.error:
      stream = draws.Draws('relabelled', self.seed, example.prompt, response)
      text = ''.join(self._mistaken(c, stream) for c in text)
    return self.task.reward(self._inner(example), text)

  def _mistaken(self, symbol, stream):
    """The symbol, or with chance `error` another one."""
    if symbol not in self.symbols or stream.uniform() >= self.error:
      return symbol
    return stream.choice([s for s in self.symbols if s != symbol])

  def _inner(self, example):
    return dataclasses.replace(
      example,
      prompt=self._read(example.prompt.removeprefix(self.tag)),
      answer=self._read(example.answer),
    )

  def _written(self, text):
    return text.translate(str.maketrans(*self._table()))

  def _read(self, text):
    return text.translate(str.maketrans(*self._table()[::-1]))

  def _table(self):
    """(from, to): a permutation of symbols and letters."""
    left = [c for c in self.letters if c not in self.symbols]
    free = [c for c in self.symbols if c not in self.letters]
    return self.symbols + ''.join(left), self.letters + ''.join(free)
