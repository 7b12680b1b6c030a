"""Python functions as tools: schemas, and calls with checked arguments."""

from collections.abc import Callable, Generator, Mapping
import contextlib
import contextvars
import inspect
import json
import math
import re
import time
import types
import typing
from typing import Any

from rl_jax.tasks.base import Example

_TYPES = {
  str: 'string',
  int: 'integer',
  float: 'number',
  bool: 'boolean',
  list: 'array',
  dict: 'object',
}
_ARGUMENT = re.compile(r'^\s*\*{0,2}(\w+)(?: \([^)]*\))?:\s+(\S.*)$')


_END = contextvars.ContextVar('end of the calls of a turn', default=math.inf)
# What tools start, see `starts`.
_BEGINS: dict[Callable, Callable[[], Any]] = {}


@contextlib.contextmanager
def limited(seconds: float) -> Generator[None, None, None]:
  """Limits what is called within to that many seconds."""
  token = _END.set(time.monotonic() + seconds)
  try:
    yield
  finally:
    _END.reset(token)


def time_left(most: float = math.inf) -> float:
  """Seconds that a tool may take, at most `most`; 0 if there are none left."""
  return max(0.0, min(most, _END.get() - time.monotonic()))


def starts(function: Callable, begin: Callable[[], Any]) -> None:
  """Notes what calls of a tool need in their process.

  begin: is called before the turns of each episode, and does nothing once it
  has done its work there. What it raises ends the episode.
  """
  _BEGINS[function] = begin


def start(function: Callable) -> None:
  """Starts what calls of a tool need in this process."""
  if function in _BEGINS:
    _BEGINS[function]()


class ToolError(ValueError):
  """A call that cannot be made; the message is for the policy."""


def schema(function: Callable) -> dict[str, Any]:
  """The description that chat templates take, in the form of OpenAI.

  Names and types are those of the signature, texts those of the docstring: its
  first line, and lines 'name: text' below 'Args:'. A first argument of the type
  Example is not the policy's to give, see `call`.

  Raises: ValueError for what is not a plain function (a class, an object, an
  async
    function or a generator), without a docstring, or for an argument whose type
    is not str, int, float, bool, list or dict.
  """
  if not inspect.isroutine(function) or _deferred(function):
    name = getattr(function, '__name__', repr(function))
    raise ValueError(
      f'tool {name:.80}: expected a function that returns its result, no '
      'class, object, generator or async function'
    )
  name, described = function.__name__, inspect.getdoc(function)
  if not described:
    raise ValueError(f'tool {name}: it has no docstring to describe it')
  first, _, rest = described.partition('\n')
  about = _arguments(rest)
  properties, required = {}, []
  for argument, (kind, optional) in parameters(function).items():
    properties[argument] = {'type': _TYPES[kind]}
    if argument in about:
      properties[argument]['description'] = about[argument]
    if not optional:
      required.append(argument)
  return {
    'type': 'function',
    'function': {
      'name': name,
      'description': first.strip(),
      'parameters': {
        'type': 'object',
        'properties': properties,
        'required': required,
      },
    },
  }


def takes_example(function: Callable) -> bool:
  """Returns whether the first argument is the example of the episode, by its
  type.
  """
  first = next(iter(inspect.signature(function).parameters.values()), None)
  return first is not None and _hints(function).get(first.name) is Example


def parameters(function: Callable) -> dict[str, tuple[type, bool]]:
  """(type, whether it may be left out) of each argument that the policy gives.

  Raises: ValueError for one that has no type of JSON.
  """
  found = {}
  hints = _hints(function)
  own = [*inspect.signature(function).parameters.items()]
  for name, one in own[takes_example(function) :]:
    where = f'tool {function.__name__}: argument {name}'
    if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL, one.VAR_KEYWORD):
      raise ValueError(f'{where} cannot be given by its name')
    kind = written = hints.get(name)
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
      given = [x for x in typing.get_args(kind) if x is not types.NoneType]
      kind = given[0] if len(given) == 1 else None
    kind = typing.get_origin(kind) or kind
    if kind not in _TYPES:
      names = ', '.join(x.__name__ for x in _TYPES)
      raise ValueError(f'{where} has the type {written!r}: expected {names}')
    found[name] = (kind, one.default is not one.empty)
  return found


def _hints(function):
  """Types of arguments by name. Raises: ValueError if they cannot be read."""
  try:
    return typing.get_type_hints(function)
  except (NameError, TypeError) as error:
    raise ValueError(
      f'tool {function.__name__}: its types cannot be read: {error}'
    ) from error


def call(
  function: Callable, arguments: Any, example: Example | None = None
) -> str:
  """The result as text, JSON unless it is text already.

  A function whose first argument has the type Example is given that of the
  episode there, with what its task or its data say of the problem.

  Raises: ToolError for arguments that do not fit, from the function itself, or
    for a result that is not JSON or no valid text.
  """
  name, known = function.__name__, parameters(function)
  if isinstance(arguments, str):
    raise ToolError(
      f'{name}: arguments must be an object, not text: leave out the quotes '
      'around it'
    )
  if not isinstance(arguments, Mapping):
    raise ToolError(f'{name}: arguments must be an object')
  for argument, value in arguments.items():
    if argument not in known:
      raise ToolError(f'{name} has no argument {argument!r:.80}')
    if not _fits(value, *known[argument]):
      kind = _TYPES[known[argument][0]]
      raise ToolError(f'{name}: {argument} = {value!r:.80} is no {kind}')
  missing = [x for x, (_, optional) in known.items() if not optional]
  missing = [x for x in missing if x not in arguments]
  if missing:
    raise ToolError(f'{name}: {", ".join(missing)} is missing')
  try:
    first = (example,) if takes_example(function) else ()
    result = function(*first, **arguments)
    if not isinstance(result, str):
      result = json.dumps(result, ensure_ascii=False, default=_plain)
    result.encode()  # half a character is not text
  except (Exception, SystemExit) as error:
    text = f'{name}: {type(error).__name__}: {error}'
    raise ToolError(text.encode(errors='replace').decode()) from error
  return result


def _plain(value):
  """Returns what JSON does not know: arrays and their scalars, and others as
  text.
  """
  return value.tolist() if hasattr(value, 'tolist') else str(value)


def _deferred(function):
  """Returns whether a call returns a coroutine or a generator, no result."""
  return (
    inspect.iscoroutinefunction(function)
    or inspect.isasyncgenfunction(function)
    or inspect.isgeneratorfunction(function)
  )


def _fits(value, kind, optional):
  if value is None:
    return optional
  if isinstance(value, bool):
    return kind is bool
  return isinstance(value, (int, float) if kind is float else kind)


def _arguments(text):
  """Returns what the docstring says of each argument."""
  found, within = {}, False
  for line in text.split('\n'):
    if not line.startswith(' ') and line.strip():
      within = line.strip() == 'Args:'
    elif within and (match := _ARGUMENT.match(line)):
      found[match[1]] = match[2].strip()
  return found
