"""The right to write in a work directory, for the code that writes there.

Another process may take a work directory over while this one is paused, at any
point of its code (`runs.lock`). Files stay whole nevertheless, by three rules:

1. New content gets a temporary name that no other writer uses. Then the right
   is checked, then the content gets its final name. The process that takes over
   first makes every later check fail and then removes all temporary names of
   others: a rename of the old process comes before that, or it fails.
2. A line goes to a file that was opened before the right is checked. The
   process that takes over replaces files of lines by copies: the old process
   has opened the former file, which has no name any more, or its check fails.
3. What is deleted or set aside is renamed first and checked again, and gets its
   name back where the right was lost in between.
"""

from collections.abc import Callable, Generator
import contextlib
import dataclasses
import os
import re
import secrets
import shutil
from typing import BinaryIO

from absl import logging

Path = str | os.PathLike[str]
_TEMPORARY = re.compile(r'.*\.tmp-[0-9a-f]{16}', re.DOTALL)


def make_token() -> str:
  """A name that no other writer has, on this host or another one."""
  return secrets.token_hex(8)


@dataclasses.dataclass(frozen=True)
class Writer:
  """One writer of a directory.

  token: as of `make_token`; part of the names of its temporary files.
  check: raises an error if another writer has taken the directory over.
  """

  token: str
  check: Callable[[], None]

  def temporary(self, path: Path) -> str:
    """The name under which this writer makes a file or a folder."""
    return f'{os.fspath(path)}.tmp-{self.token}'

  @contextlib.contextmanager
  def replacing(self, path: Path) -> Generator[BinaryIO]:
    """A file to write that takes the place of `path` at exit.

    A reader sees all of it or what was there; after an error it is removed.
    """
    temporary = self.temporary(path)
    try:
      with open(temporary, 'wb') as file:
        yield file
        file.flush()
        os.fsync(file.fileno())  # before it has its name: it is never empty
      self.check()
      os.replace(temporary, path)
    finally:
      with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)

  def move(self, source: Path, target: Path) -> None:
    """Renames what no other writer uses; undone if the right was lost."""
    self.check()
    os.rename(source, target)
    try:
      self.check()
    except BaseException:
      with contextlib.suppress(OSError):  # who has taken over has removed it
        os.rename(target, source)
      raise

  def set_aside(self, path: Path) -> str:
    """Renames PATH to PATH.1, or the next number that is free; returns that."""
    number = 1
    while os.path.lexists(f'{os.fspath(path)}.{number}'):
      number += 1
    target = f'{os.fspath(path)}.{number}'
    self.move(path, target)
    return target

  def delete_folder(self, path: Path) -> None:
    """Deletes a folder, if there is one; it never exists in part."""
    aside = self.temporary(f'{os.fspath(path)}.deleted')
    try:
      self.move(path, aside)
    except FileNotFoundError:
      return
    shutil.rmtree(aside)

  def clear(self, folder: Path) -> None:
    """Removes the temporary files and folders of other writers.

    For who has just taken over, or starts where nobody writes.
    """
    if not os.path.isdir(folder):
      return
    for name in os.listdir(folder):
      path = os.path.join(folder, name)
      if not _TEMPORARY.fullmatch(name) or name.endswith(self.token):
        continue
      try:
        aside = self.temporary(path)
        self.move(path, aside)  # at once, whatever is written there meanwhile
        if os.path.isdir(aside) and not os.path.islink(aside):
          shutil.rmtree(aside, ignore_errors=True)
        else:
          os.unlink(aside)
      except OSError as error:
        logging.warning('%s cannot be removed: %s', path, error)


def _allowed() -> None:
  """No other process writes there."""


def sole_writer() -> Writer:
  """The writer of a directory that no other process uses."""
  return Writer(make_token(), _allowed)
