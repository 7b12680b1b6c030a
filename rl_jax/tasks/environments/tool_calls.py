"""Tool calls in the text of a turn, in the form that Qwen and Hermes have.

<tool_call>
{"name": "calculator", "arguments": {"expression": "2 * 3"}}
</tool_call>
"""

from collections.abc import Sequence
import dataclasses
import itertools
import json
import re
from typing import Any, ClassVar

OPEN, CLOSE = '<tool_call>', '</tool_call>'
_CALL = re.compile(f'{OPEN}(.*?)(?:{CLOSE}|$)', re.DOTALL)
_RESULT = '<tool_response>\n{}\n</tool_response>'
_KEYS = ('name', 'id', 'type')  # of a call without arguments
_MOST_LEVELS = 50  # of lists and objects: deeper ones break what reads them


@dataclasses.dataclass(frozen=True)
class Call:
  """A tool's name and arguments, or what is wrong with the text."""

  name: str = ''
  arguments: Any = None
  error: str = ''


@dataclasses.dataclass(frozen=True)
class JsonCalls:
  """Any tool by its name, with arguments as JSON between two tags."""

  # How a chat template that describes it begins a call; '': none describes it.
  template_mark: ClassVar[str] = OPEN

  def calls_in(self, text: str) -> list[Call]:
    """All calls of a turn, in order; the last one may lack its end."""
    return [_call(match[1]) for match in _CALL.finditer(text)]

  def results(self, texts: Sequence[str], wrapped: bool) -> str:
    """Returns what the policy reads; not wrapped: the template marks results
    itself.

    Several results in one message are separated as templates write them.
    """
    if not wrapped and len(texts) == 1:
      return texts[0]
    if wrapped:
      return '\n'.join(map(_RESULT.format, texts))
    return '\n</tool_response>\n<tool_response>\n'.join(texts)

  def instructions(self, schemas: Sequence[dict[str, Any]]) -> str:
    """A system message for models whose template knows no tools."""
    lines = '\n'.join(json.dumps(one, ensure_ascii=False) for one in schemas)
    return (
      'You may call functions to answer the question. They are described in '
      f'<tools></tools>:\n<tools>\n{lines}\n</tools>\n'
      f'Write each call as {OPEN}{{"name": NAME, "arguments": OBJECT}}{CLOSE} '
      'and end your turn; the results follow in '
      '<tool_response></tool_response>.'
    )


def _call(text):
  try:
    found = json.loads(text)
  except (ValueError, RecursionError) as error:
    return Call(error=f'the call is not JSON: {error}')
  if isinstance(found, dict) and isinstance(found.get('function'), dict):
    return Call(
      error='the call is within "function": write its name and arguments alone'
    )
  if not isinstance(found, dict) or not isinstance(found.get('name'), str):
    return Call(error='the call is no object with a name')
  others = [x for x in found if x not in _KEYS and found[x]]
  if 'arguments' not in found and others:
    return Call(error=f'the call has no "arguments", but {others}'[:200])
  if _levels(found) > _MOST_LEVELS:
    return Call(error=f'the call has more than {_MOST_LEVELS} levels')
  return Call(found['name'], found.get('arguments', {}))


def _levels(value):
  """Returns how deep lists and objects are nested, without recursion."""
  count, level = 0, [value]
  while level := [x for x in level if isinstance(x, (dict, list))]:
    count += 1
    inside = (x.values() if isinstance(x, dict) else x for x in level)
    level = list(itertools.chain.from_iterable(inside))
  return count
