"""Outcomes of workers, kept until the next checkpoints hold them.

Timeouts are not reproducible, so a redone iteration could see another outcome
than the one that was trained on and logged. Calls of a pool are numbered from
the start of the run; the number is part of a checkpoint, and a run that
continues there is given the journaled outcomes of the calls that it repeats.

Lines of earlier versions have no checksum and are read as they are; those of
episodes, too, of which later ones are in `episodes.journal`.
"""

from collections.abc import Callable, Sequence
import contextlib
import json
import os
from typing import Any
import zlib

from absl import logging
from etils import epath

from rl_jax.verification import journal_lines
from rl_jax.verification.pool import Outcome

FILE = 'verifications.jsonl'
_KEYS = ['call', 'crc', 'outcomes']


class JournaledPool:
  """A VerifierPool with a journal.

  pool: whose calls these are. With path=None it only counts calls. The journal
  has one line of JSON per call, flushed before the call returns. `forget` drops
  lines that no checkpoint needs any more. A line is used only for the same
  inputs (CRC-32), so a file of another run changes no outcome. task: text that
  tells apart what judges (code and data); lines that another wrote are not used
  either. writer: the runtime.writer.Writer of the directory, if path is given.
  """

  def __init__(
    self,
    pool: Any,
    path: str | os.PathLike[str] | None = None,
    task: str = '',
    writer: Any = None,
  ):
    self.pool, self._writer = pool, writer
    self._task_crc = zlib.crc32(task.encode())
    self._path = None if path is None else epath.Path(path)
    self._calls = 0
    self._lines = {} if self._path is None else read(self._path)
    self._file = None
    self._failures = 0

  def reward(
    self, examples: Sequence[Any], responses: Sequence[str]
  ) -> list[Outcome]:
    """Calls VerifierPool.reward, or repeats what it returned the first time."""
    outcomes = self._known(
      lambda: [[e.id, r] for e, r in zip(examples, responses, strict=True)],
      lambda: [
        [o.components, o.kind, o.detail]
        for o in self.pool.reward(examples, responses)
      ],
      are_numbers=True,
    )
    return [Outcome(*outcome) for outcome in outcomes]

  def _known(
    self,
    inputs: Callable[[], list],
    call: Callable[[], list],
    are_numbers: bool = False,
  ) -> list:
    """The result of the next call of the pool, as JSON."""
    number, self._calls = self._calls, self._calls + 1
    if self._path is None:
      return call()
    asked = inputs()
    crc = zlib.crc32(json.dumps(asked).encode(), self._task_crc)
    line = self._lines.get(number)
    if line is not None and line['crc'] == crc:
      known = line['outcomes']
      if len(known) == len(asked) and (not are_numbers or _numbers(known)):
        return known
    outcomes = call()
    self._lines[number] = {'call': number, 'crc': crc, 'outcomes': outcomes}
    self._append(self._lines[number])
    return outcomes

  def mark(self) -> int:
    """The number of calls so far, to be stored in a checkpoint."""
    return self._calls

  def forget(self, calls: int) -> None:
    """Drops the lines of the first calls: what a committed checkpoint marked.

    A save that fails must not call it: the run then continues before it.
    """
    self._rewrite({c: l for c, l in self._lines.items() if c >= calls})

  def restore(self, calls: int) -> None:
    """Continues after that many calls."""
    self._calls = calls

  def counts(self) -> dict[str, int]:
    """Samples judged by the pool, by kind; journaled ones are not."""
    return self.pool.counts()

  def close(self) -> None:
    """Closes the pool and the file."""
    self.pool.close()
    self._forget_file()

  def _append(self, line):
    try:
      if self._file is None:
        self._rewrite(self._lines, force=True)  # a torn last line goes
        return
      self._writer.check()  # of a file that was opened before
      self._file.write(journal_lines.encode(line))
      self._file.flush()
    except OSError as error:
      self._warn(error)
      self._forget_file()  # the next line brings this one along

  def _rewrite(self, lines, force=False):
    """The file holds these lines, at every moment all or the old ones."""
    if self._path is None or (len(lines) == len(self._lines) and not force):
      return
    self._lines = lines
    self._forget_file()
    try:
      self._path.parent.mkdir(parents=True, exist_ok=True)
      with self._writer.replacing(self._path) as file:
        file.write(b''.join(map(journal_lines.encode, lines.values())))
      self._file = self._path.open('ab')
    except OSError as error:
      self._warn(error)

  def _warn(self, error):
    """Once: a full disk fails every call."""
    self._failures += 1
    if self._failures == 1:
      text = '%s cannot be written: %s (later failures are not reported)'
      logging.warning(text, self._path, error)

  def _forget_file(self):
    file, self._file = self._file, None
    with contextlib.suppress(OSError):  # no space for what is buffered
      if file is not None:
        file.close()


def _decode(text: bytes) -> dict[str, Any]:
  """A line; ValueError for a damaged one, or one of another form."""
  line = journal_lines.decode(text)
  if list(line) != _KEYS:
    raise ValueError(f'it has not the keys {", ".join(_KEYS)}')
  call, crc, outcomes = line.values()
  if not (type(call) is int and call >= 0 and type(crc) is int):
    raise ValueError('it has no number of a call')
  if not (isinstance(outcomes, list) and all(map(_is_outcome, outcomes))):
    raise ValueError('it holds no outcomes of a call')
  return line


def _is_outcome(value):
  """Returns whether it is [components or reply, kind, detail]."""
  if not isinstance(value, list) or len(value) != 3:
    return False
  result, kind, detail = value
  if not isinstance(result, dict) and (result is not None or kind == 'ok'):
    return False
  return isinstance(kind, str) and isinstance(detail, str)


def _numbers(outcomes):
  """Returns whether all components are numbers."""
  values = (
    x for components, *_ in outcomes for x in (components or {}).values()
  )
  return all(type(x) in (int, float) for x in values)


def read(path: epath.Path) -> dict[int, dict[str, Any]]:
  """The lines of a file by call; none that follows a damaged one is used."""
  found = {}
  if not path.exists():
    return found
  lines = path.read_bytes().split(b'\n')[:-1]  # the last one may be torn
  for number, text in enumerate(lines, start=1):
    try:
      line = _decode(text)
    except ValueError as error:
      logging.warning(
        '%s:%d is damaged (%s): this call and those after it are made again, '
        'where the run repeats them',
        path,
        number,
        error,
      )
      break
    found[line['call']] = line
  return found
