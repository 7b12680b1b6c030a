"""Finds the line of the user's files that caused an error."""

import dataclasses
import re
import traceback
import types

from rl_jax import overrides, user_modules

_OF_USERS = (ValueError, OSError, ImportError, MemoryError)
_UNKNOWN = re.compile(
  r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'"
)


def places(error: BaseException) -> list[str]:
  """'FILE:LINE in FUNCTION' of the calls in the user's files, in order."""
  own = {file.path for file in user_modules.files().values()}
  return [
    f'{frame.filename}:{frame.lineno} in {frame.name}'
    for frame in traceback.extract_tb(error.__traceback__)
    if frame.filename in own
  ]


def described(error: BaseException) -> str:
  """The error; what passed through the user's files has the last place there.

  And the field that was meant, where a dataclass does not know one.
  """
  text = str(error) or type(error).__name__
  found = places(error)
  if not found:
    return text
  if not isinstance(error, _OF_USERS):
    text = f'{type(error).__name__}: {text}.{_hint(error)}'.removesuffix('.')
  if found[-1].partition(' in ')[0] in text:
    return text
  return f'{text} ({found[-1]}; --traceback shows all calls)'


def _hint(error):
  """The nearest field of the class whose call has an unknown one, or ''."""
  match = _UNKNOWN.fullmatch(str(error))
  if not match:
    return ''
  *_, (frame, _) = traceback.walk_tb(error.__traceback__)
  for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
    if isinstance(value, types.ModuleType):
      value = getattr(value, match[1], None)
    cls = value if isinstance(value, type) else type(value)
    if cls.__name__ == match[1] and dataclasses.is_dataclass(cls):
      names = [field.name for field in dataclasses.fields(cls)]
      return overrides.nearest(match[2], names)
  return ''
