"""Judges and revisions that a function answers in place of a model."""

from collections.abc import Callable, Sequence
import dataclasses
import numbers
from typing import Any

from rl_jax import user_modules
from rl_jax.judging.judge_questions import Question
from rl_jax.judging.judges import Asked
from rl_jax.judging.rubric import Reviser
from rl_jax.models.judge_source import Judge, Revision


def encode(text: str) -> list[int]:
  """The characters of a text, as the tokens of a function."""
  return [ord(x) for x in text]


def encode_question(question: Question) -> list[int]:
  """The characters of a question; a conversation is its turns, a line each."""
  turns = (f'{x["role"]}: {x["content"]}' for x in question.messages)
  return encode('\n'.join(turns) if question.messages else question.text)


@dataclasses.dataclass(frozen=True)
class FunctionReader:
  """The answers of a function: texts, or numbers.

  name: of the judge, for errors. kind: str or float.
  """

  name: str
  function: Callable[[str], Any]
  kind: type

  def __call__(self, params: Any, questions: Sequence[list[int]]) -> list:
    """One answer a question; raises ValueError for one of another kind."""
    del params
    return [self._answer(''.join(map(chr, ids))) for ids in questions]

  def _answer(self, text):
    answer = self.function(text)
    if self.kind is str and isinstance(answer, str):
      return answer
    if self.kind is float and isinstance(answer, numbers.Real):
      return float(answer)
    raise ValueError(
      f'judge {self.name!r}: its function returned {answer!r:.80}, but '
      f'{"a text" if self.kind is str else "a number"} is read'
    )


def judge(source: Judge, reviser: Reviser | None) -> Asked:
  """A judge whose `function` answers. Raises: ValueError if there is none."""
  kind = str if source.reads == 'text' else float
  read = FunctionReader(source.name, _function(source.function), kind)
  return Asked(source, {}, encode_question, read, reviser)


def reviser(name: str, source: Revision) -> Reviser:
  """A reviser whose `function` answers; name: of its judge."""
  read = FunctionReader(name, _function(source.function), str)
  return Reviser(source, {}, encode, read)


def _function(text):
  return user_modules.resolve(user_modules.reference(text))
