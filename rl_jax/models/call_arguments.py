"""Arguments of tool calls in messages: objects, or JSON text as of OpenAI.

Templates differ: most write an object as JSON, some put a text between others.
A message is rendered as it is, or else with its arguments in the other form.
"""

from collections.abc import Callable, Mapping, Sequence
import json
import re
from typing import Any

Message = Mapping[str, Any]


def rendered(
  render: Callable[[Sequence[Message]], str], messages: Sequence[Message]
) -> str:
  """The text of messages, with arguments as the template can write them.

  Text that a template would write as the JSON of a text, in quotes, is made an
  object, and so is what it cannot write as text; objects are made text where it
  cannot write them as objects.

  Raises: ValueError of `render` for the messages as they are.
  """
  texts = [x for x in _arguments(messages) if isinstance(x, str)]
  try:
    text = render(messages)
  except ValueError:
    for change in (_as_object, _as_text):
      other = _changed(messages, change)
      if other != list(messages):
        try:
          return render(other)
        except ValueError:
          pass
    raise
  if any(json.dumps(x, ensure_ascii=False) in text for x in texts if x):
    return render(_changed(messages, _as_object))
  return text


def check_named(messages: Sequence[Message], template: str) -> None:
  """Raises ValueError for `parameters` where the template reads arguments."""
  if not re.search(r'\barguments\b', template):
    return
  for call in _calls(messages):
    if call.get('parameters') and 'arguments' not in call:
      raise ValueError(
        f'the tool call of {call.get("name")!r:.80} has parameters, where the '
        'chat template of this tokenizer reads arguments'
      )


def _calls(messages):
  """The objects with name and arguments."""
  for message in messages:
    calls = message.get('tool_calls')
    for call in calls if isinstance(calls, (list, tuple)) else ():
      if isinstance(call, Mapping):
        function = call.get('function')
        yield function if isinstance(function, Mapping) else call


def _arguments(messages):
  return [call.get('arguments') for call in _calls(messages)]


def _changed(messages, change):
  """The messages with other arguments."""

  def of_call(call):
    if not isinstance(call, Mapping):
      return call
    if isinstance(call.get('function'), Mapping):
      return {**call, 'function': of_call(call['function'])}
    if 'arguments' not in call:
      return call
    return {**call, 'arguments': change(call['arguments'])}

  return [
    {**message, 'tool_calls': [of_call(x) for x in message['tool_calls']]}
    if isinstance(message.get('tool_calls'), (list, tuple))
    else message
    for message in messages
  ]


def _as_object(value):
  if not isinstance(value, str):
    return value
  try:
    found = json.loads(value or '{}')
  except (ValueError, RecursionError):
    return value
  return found if isinstance(found, dict) else value


def _as_text(value):
  if not isinstance(value, Mapping):
    return value
  return json.dumps(value, ensure_ascii=False)
