"""Calls of one tool with one text between two marks: a line 'Call: 2 * 3'."""

from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar

from rl_jax.tasks.environments.tool_calls import Call

SLOT = '{result}'


@dataclasses.dataclass(frozen=True)
class MarkedCalls:
  """A short form for models that learn it from worked examples in the prompt.

  tool, argument: what is called; the text between the marks is the argument, of
    type str, the only one that the tool requires.
  opening, closing: the marks; the end of the turn closes a call too, so
    `closing` may be one of rollout.stop.
  closed: a call without its end is none, instead of one to the end of the turn.
  result: what the policy reads; {result} stands for the tool's text.

  That of Toolformer (Schick et al. 2023), '[2 * 3 -> 6]', has the marks '[' and
  '->', and the result ' {result}]'.
  """

  tool: str = 'calculator'
  argument: str = 'expression'
  opening: str = 'Call:'
  closing: str = '\n'
  result: str = f'Result: {SLOT}\n'
  closed: bool = False
  template_mark: ClassVar[str] = ''

  def __post_init__(self):
    for name, text in (('opening', self.opening), ('closing', self.closing)):
      if not text:
        raise ValueError(f'MarkedCalls.{name} is empty: a call needs marks')
    check_result('MarkedCalls', self.result)

  def calls_in(self, text: str) -> list[Call]:
    """All calls of a turn, in order; the last one may lack its end."""
    pieces = [x.partition(self.closing) for x in text.split(self.opening)[1:]]
    texts = [inside for inside, end, _ in pieces if end or not self.closed]
    return [Call(self.tool, {self.argument: one.strip()}) for one in texts]

  def results(self, texts: Sequence[str], wrapped: bool) -> str:
    """Returns what the policy reads, `wrapped` or not."""
    del wrapped
    return ''.join(self.result.replace(SLOT, text) for text in texts)

  def instructions(self, schemas: Sequence[dict[str, Any]]) -> str:
    """One sentence about the tool and the marks.

    Raises: ValueError if the tools are others.
    """
    tool = only_tool('MarkedCalls', schemas, self.tool, self.argument)
    return (
      f'{tool["function"]["description"]} Write {self.opening!r}, the '
      f'{self.argument} and {self.closing!r} to end your turn; the result '
      'follows.'
    )


def check_result(where: str, result: str) -> None:
  """Raises ValueError unless a result has a place for the tool's text."""
  if SLOT not in result:
    raise ValueError(f'{where}.result = {result!r} does not contain {SLOT}')


def only_tool(
  where: str, schemas: Sequence[dict[str, Any]], tool: str, argument: str
) -> dict[str, Any]:
  """The schema of the only tool, which requires one text.

  Raises: ValueError if the tools are others.
  """
  found = {one['function']['name']: _required(one) for one in schemas}
  wanted = {tool: {argument: 'string'}}
  if found != wanted:
    raise ValueError(
      f'{where}: tools and what they require must be {wanted}, got {found}'
    )
  (schema,) = schemas
  return schema


def _required(schema):
  parameters = schema['function']['parameters']
  types = parameters['properties']
  return {name: types[name]['type'] for name in parameters['required']}
