"""Files that a task is made of, which code of the policy must not read."""

from collections.abc import Iterator, Mapping
import dataclasses
import os
import pathlib
from typing import Any

from rl_jax import checks, user_modules

_FOLDER = 'tfds:'  # a data set: 'tfds:FOLDER@SPLIT'
_MOST_CHARACTERS = 4096  # of a path


def files_of(task: Any) -> list[str]:
  """Paths of the files that texts in the fields of a task name.

  As they are, as 'sql:FILE' or 'FILE.py:NAME', or all of a data set's folder.
  Modules of the user, too: they may hold right answers.
  """
  found = {file.path for file in user_modules.files().values()}
  for text in _texts(task):
    named = (text, text.partition(':')[2], text.rpartition(':')[0])
    found |= {os.path.realpath(path) for one in named for path in _file(one)}
    if text.startswith(_FOLDER):
      folder = pathlib.Path(text.removeprefix(_FOLDER).partition('@')[0])
      found |= {str(x.resolve()) for x in folder.rglob('*') if x.is_file()}
  return sorted(found)


def _texts(value: Any) -> Iterator[str]:
  if isinstance(value, str):
    yield value
  elif dataclasses.is_dataclass(value) and not isinstance(value, type):
    for below in checks.values(value).values():
      yield from _texts(below)
  elif isinstance(value, Mapping):
    yield from _texts([*value, *value.values()])
  elif isinstance(value, list | tuple):
    for one in value:
      yield from _texts(one)


def _file(text):
  """The path, if there is a file."""
  if len(text) > _MOST_CHARACTERS or '\0' in text:
    return []
  path = os.path.expanduser(text)
  return [path] if os.path.isfile(path) else []
