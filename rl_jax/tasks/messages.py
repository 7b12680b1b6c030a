"""Turns of conversations in data, and what else a chat template reads there."""

from collections.abc import Callable, Mapping, Sequence
import json
from typing import Any, NoReturn

ROLES = ('system', 'developer', 'user', 'assistant', 'tool')
# What a template may read of a turn beside role and content.
FIELDS = ('name', 'tool_calls', 'tool_call_id', 'reasoning_content', 'thinking')
_IMAGES = ('images', 'image')
# Fields of a row that belong to its conversations.
OF_CONVERSATIONS = ('tools', 'chat_template_kwargs', *_IMAGES)
# Variables that a template gets in any case.
_OWN = ('messages', 'add_generation_prompt', 'bos_token', 'eos_token')
Fail = Callable[[str, str], NoReturn]  # (kind, problem); raises


def read_prompt(
  value: Any, field: str, fail: Fail
) -> tuple[dict[str, Any], ...]:
  """The turns of a prompt, which ends before one of the assistant."""
  if not value:
    fail(f'empty_{field}', f'field {field!r} has no messages')
  turns = tuple(
    read_message(turn, field, number, fail) for number, turn in enumerate(value)
  )
  check_prompt(turns, fail)
  return turns


def check_prompt(turns: Sequence[Mapping[str, Any]], fail: Fail) -> None:
  """Fails unless the last turn is one that the assistant answers."""
  last = turns[-1]['role']
  if last not in ('user', 'tool'):
    fail(
      'wrong_roles',
      f'the prompt ends with a message of the role {last!r}, not user',
    )


def check_no_images(record: Mapping[str, Any], fail: Fail) -> None:
  """Fails for a row with images: models read text only."""
  for name in _IMAGES:
    if record.get(name) not in (None, [], ''):
      fail('images', f'field {name!r} is given, and only text can be read')


def read_message(
  value: Any, field: str, number: int, fail: Fail
) -> dict[str, Any]:
  """{role, content} and those of FIELDS that the turn has.

  content may be a list of parts {'type': 'text', 'text': ...}, which are
  concatenated; beside tool_calls, and only there, it may be empty or null.
  """
  place = f'message {number} of field {field!r}'
  if not isinstance(value, Mapping):
    fail('wrong_type', f'{place} is {type(value).__name__}, no object')
  role = value.get('role')
  if role not in ROLES:
    known = ', '.join(ROLES)
    fail('wrong_roles', f'{place} has the role {role!r}, none of {known}')
  more = {name: without_nulls(value.get(name)) for name in FIELDS}
  more = {name: x for name, x in more.items() if x}
  content = value.get('content')
  if content is None and 'tool_calls' in more:
    content = ''
  if isinstance(content, (list, tuple)):
    content = ''.join(_part(part, place, fail) for part in content)
  if not isinstance(content, str):
    kind = type(content).__name__
    fail('wrong_type', f'{place}: the content is {kind}, not text')
  if role == 'assistant' and not content and 'tool_calls' not in more:
    fail(f'empty_{field}', f'{place} is empty')
  return {'role': role, 'content': content, **more}


def _part(part: Any, place: str, fail: Fail) -> str:
  part = part if isinstance(part, Mapping) else {}
  text = part.get('text')
  if not isinstance(text, str) or part.get('type', 'text') != 'text':
    fail(
      'wrong_type',
      f'{place}: the content has a part {part!r:.80}, and only '
      "{'type': 'text', 'text': ...} can be read",
    )
  return text


def template_arguments(record: Mapping[str, Any], fail: Fail) -> dict[str, Any]:
  """Variables of the template: `tools`, and those of `chat_template_kwargs`.

  tools: a list of objects, or one as JSON. Entries that are null are absent.
  """
  tools, more = record.get('tools'), record.get('chat_template_kwargs')
  if isinstance(tools, str):
    try:
      tools = json.loads(tools)
    except ValueError as error:
      fail('wrong_type', f"field 'tools' is not JSON: {error}")
  if not isinstance(tools or [], (list, tuple)) or not all(
    isinstance(tool, Mapping) for tool in tools or ()
  ):
    fail('wrong_type', "field 'tools' is not a list of objects")
  if not isinstance(more or {}, Mapping):
    fail('wrong_type', "field 'chat_template_kwargs' is not an object")
  own = sorted({*_OWN, 'tools'} & set(more or ()))
  if own:
    fail('wrong_type', f"field 'chat_template_kwargs' sets {', '.join(own)}")
  found = without_nulls(dict(more or {}))
  return found | ({'tools': without_nulls(tools)} if tools else {})


def without_nulls(value: Any) -> Any:
  """Tables have every field of any row; null stands for one that is absent."""
  if isinstance(value, Mapping):
    return {k: without_nulls(x) for k, x in value.items() if x is not None}
  if isinstance(value, (list, tuple)):
    return [without_nulls(x) for x in value]
  return value
