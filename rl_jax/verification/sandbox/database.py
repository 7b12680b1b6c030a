"""Queries to a file of SQLite, in a process that ends where one takes long.

SQLite can be interrupted between its steps, but a single one may take minutes:
printf('%.*c', 999999999, 'x').
"""

import json
import os
import pathlib
import select
import sqlite3
import subprocess
import sys
import time
from typing import Any
import weakref

from rl_jax.verification import child_processes

_RUNNER = pathlib.Path(__file__).with_name('query_runner.py')
_FLAGS = ('-P', '-s', '-S', '-B')
_MOST_BYTES = 1 << 20  # of an answer


class Database:
  """A file of SQLite; its process lives as long as this one."""

  def __init__(self, path: str):
    self._path = path
    self._process: subprocess.Popen | None = None

  def answer(self, query: str, seconds: float) -> tuple[list[str], list[Any]]:
    """(names of the columns, at most 21 rows) of one query, read-only.

    Raises: sqlite3.Error as of SQLite, for values of more than a million bytes
      and for long answers; TimeoutError after that many seconds.
    """
    deadline = time.monotonic() + seconds
    process = self._process
    if process is None or process.poll() is not None:
      self.close()
      process = self._start()
    assert process.stdin is not None and process.stdout is not None
    try:
      process.stdin.write(json.dumps(query).encode() + b'\n')
      process.stdin.flush()
      found = json.loads(_read(process.stdout.fileno(), deadline))
    except TimeoutError:
      self.close()
      raise TimeoutError(f'the query took {seconds:.1f} seconds') from None
    except (OSError, ValueError) as error:
      self.close()
      raise sqlite3.OperationalError('the query needs too much') from error
    if 'error' in found:
      raise _ERRORS.get(found['kind'], sqlite3.DatabaseError)(found['error'])
    return found['names'], found['rows']

  def close(self) -> None:
    """Ends the process; the next query starts another one."""
    if self._process is not None:
      self._process = None
      self._end()

  def _start(self) -> subprocess.Popen:
    with child_processes.keeping():
      process = subprocess.Popen(
        [sys.executable, *_FLAGS, _RUNNER, self._path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
      )
    self._process = process
    self._end = weakref.finalize(self, _end, process)
    return process


def _read(fd: int, deadline: float) -> bytes:
  """One line."""
  output = b''
  while not output.endswith(b'\n'):
    left = max(0.0, deadline - time.monotonic())
    if not select.select([fd], [], [], left)[0]:
      raise TimeoutError
    chunk = os.read(fd, _MOST_BYTES)
    if not chunk or len(output) > _MOST_BYTES:
      raise OSError('it has ended')
    output += chunk
  return output


def _end(process):
  process.kill()
  with process:  # reaped, its pipes closed
    child_processes.kept.discard(process.pid)


_ERRORS = {
  one.__name__: one
  for one in (
    *(sqlite3.DataError, sqlite3.DatabaseError, sqlite3.IntegrityError),
    *(sqlite3.InterfaceError, sqlite3.InternalError, sqlite3.NotSupportedError),
    *(sqlite3.OperationalError, sqlite3.ProgrammingError, sqlite3.Warning),
    *(MemoryError, ValueError),
  )
}
