"""Closings of batches whose groups depend on time, for runs that continue.

With rollout.order='arrival' a batch has the groups that were complete first.
Which those are is in a file before the update that trains them starts, so that
the run is a function of its configuration and of this file: a run that
continues repeats the closings that it finds. A line is a closing:

  {"closing": 17, "groups": [..], "dropped": [..], "rule": [N, K, max_rounds]}

groups: of the batch, dropped: those that a filter took out, both by serials.
The first line of an update counts, and lines of another rule are not used.
"""

from collections.abc import Mapping
import os
from typing import Any

from absl import logging
from etils import epath

from rl_jax.episodes.schedule import Close, Rule
from rl_jax.runtime import processes
from rl_jax.verification import journal_lines

FILE = 'closings.jsonl'
Closings = dict[int, tuple[tuple[int, ...], tuple[int, ...]]]


class ClosingJournal:
  """A file of closings, which only grows.

  folder: None keeps nothing, and path is None. writer: the
  runtime.writer.Writer of the directory.
  """

  def __init__(
    self, folder: str | os.PathLike[str] | None = None, writer: Any = None
  ):
    self.path = None if folder is None else epath.Path(folder) / FILE
    self._writer = writer
    self._file: Any = None
    self._failed = False

  def known(self, rule: Rule, first: int) -> Closings:
    """The closings of a rule from update `first` on, as far as none is missing.

    What follows a gap was closed beside another batch than will be closed now.
    """
    lines: Closings = {}
    for line in self._lines():
      if line['rule'] == _name(rule):
        closing = tuple(line['groups']), tuple(line['dropped'])
        lines.setdefault(line['closing'], closing)
    found: Closings = {}
    while first in lines:
      found[first] = lines[first]
      first += 1
    return found

  def add(self, close: Close, rule: Rule) -> None:
    """Puts a closing on the disk; its update may start then.

    Process 0 does: the update of the others waits for it.
    A line that cannot be written is a warning: only a run that is killed before
    its next checkpoint continues in another way.
    """
    if self.path is None or not processes.is_main():
      return
    line = {
      'closing': close.update,
      'groups': list(close.groups),
      'dropped': sorted(set(close.used) - set(close.groups)),
      'rule': _name(rule),
    }
    try:
      if self._file is None:
        self._file = self._opened(close.update)
      self._writer.check()  # of a file that was opened before
      self._file.write(journal_lines.encode(line))
      self._file.flush()
      os.fsync(self._file.fileno())
    except OSError as error:
      if not self._failed:
        text = '%s cannot be written: %s (later failures are not reported)'
        logging.warning(text, self.path, error)
      self._failed = True

  def close(self) -> None:
    """Closes the file."""
    if self._file is not None:
      self._file.close()

  def _opened(self, update):
    """The file to append to: a copy of its lines of earlier updates.

    Another process that wrote there, and was paused, has the former file. Lines
    of this update or later ones, which were not repeated, are of another run.
    """
    assert self.path is not None
    self.path.parent.mkdir(parents=True, exist_ok=True)
    kept = [line for line in self._lines() if line['closing'] < update]
    with self._writer.replacing(self.path) as file:
      file.writelines(map(journal_lines.encode, kept))
    return self.path.open('ab')

  def _lines(self):
    """The lines that are whole; the last one may be torn."""
    if self.path is None or not self.path.exists():
      return []
    found, damaged = [], 0
    for text in self.path.read_bytes().split(b'\n')[:-1]:
      try:
        found.append(_checked(journal_lines.decode(text, whole=True)))
      except ValueError:
        damaged += 1
    if damaged:
      logging.warning(
        '%s: %d lines are damaged: these batches close again',
        self.path,
        damaged,
      )
    return found


def _name(rule):
  return [rule.groups, rule.staleness, rule.max_rounds]


def _checked(line: Mapping[str, Any]) -> Mapping[str, Any]:
  lists = [line.get(name) for name in ('groups', 'dropped', 'rule')]
  numbers = [line.get('closing')]
  for one in lists:
    if not isinstance(one, list):
      raise ValueError('it names no groups')
    numbers += one
  if any(type(x) is not int for x in numbers):
    raise ValueError('it names no groups')
  return line
