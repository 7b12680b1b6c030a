"""Calls as programs between fences: ```python, lines of code, ```."""

from collections.abc import Sequence
import dataclasses
import re
from typing import Any, ClassVar

from rl_jax.checks import checked, chosen
from rl_jax.tasks.environments import marked_calls
from rl_jax.tasks.environments.tool_calls import Call


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class FencedCalls:
  r"""One program of a turn, between fences that are not a part of it.

  tool, argument: what is called with the code, of type str, the only argument
    that the tool requires.
  languages: what may follow the opening fence; '' is a fence without a name. A
    block of another language is text.
  block: which one of the turn is run, 'first' or 'last'.
  asks: a text after the block without which it is not run, as '```output' that
    also ends the turn (rollout.stop with show_stop); '': none.
  result: what the policy reads; {result} stands for the tool's text.

  A block without its end is not run. ToRL (GAIR-NLP/ToRL) has the last block of
  'python', asks = '```output' and the result '\n{result}\n```\n'; SimpleTIR the
  first one of ('python', 'py', ''), and asks for nothing.
  """

  tool: str = 'python'
  argument: str = 'code'
  languages: tuple[str, ...] = ('python',)
  block: str = chosen('last', ('first', 'last'))
  asks: str = ''
  result: str = f'\n{marked_calls.SLOT}\n```\n'
  template_mark: ClassVar[str] = ''

  def __post_init__(self):
    if not self.languages:
      raise ValueError('FencedCalls.languages is empty: no block is a program')
    for name in self.languages:
      if not re.fullmatch(r'[\w+-]*', name):
        raise ValueError(
          f'FencedCalls.languages = {self.languages}: {name!r} cannot follow a '
          'fence'
        )
    marked_calls.check_result('FencedCalls', self.result)

  def calls_in(self, text: str) -> list[Call]:
    """The program of a turn; none if it does not ask for its result."""
    if self.asks:
      text, asked, _ = text.rpartition(self.asks)
      if not asked:
        return []
    found = [code for name, code in _blocks(text) if name in self.languages]
    if not found:
      return []
    code = found[0] if self.block == 'first' else found[-1]
    return [Call(self.tool, {self.argument: code})]

  def results(self, texts: Sequence[str], wrapped: bool) -> str:
    """Returns what the policy reads, `wrapped` or not."""
    del wrapped
    return ''.join(
      self.result.replace(marked_calls.SLOT, text) for text in texts
    )

  def instructions(self, schemas: Sequence[dict[str, Any]]) -> str:
    """One sentence about the tool and the fences.

    Raises: ValueError if the tools are others.
    """
    tool = marked_calls.only_tool(
      'FencedCalls', schemas, self.tool, self.argument
    )
    ask = f' and {self.asks!r}' * bool(self.asks)
    return (
      f'{tool["function"]["description"]} Write the {self.argument} between '
      f'lines of ```{self.languages[0]} and ```{ask} to end your turn; the '
      'result follows.'
    )


def _blocks(text):
  """(what follows the opening fence, content) of blocks that have an end."""
  found, name, lines = [], None, []
  for line in text.split('\n'):
    if name is None:
      # Models open a block also at the end of a line of text.
      before, fence, after = line.rpartition('```')
      if fence and '```' not in before:
        name, lines = after.strip(), []
    elif line.startswith('```'):
      found.append((name, ''.join(f'{one}\n' for one in lines)))
      name = None
    else:
      lines.append(line)
  return found
