"""Answers of calls, kept until the next checkpoints hold what came of them.

An answer is in a file before it is used: it may depend on time, and a call may
be slow or cost money. A run that continues makes no call whose answer is known.
A line is an answer:

  {"of": [serial, sample], "turn": 3, "kind": "step", "crc": ..,
   "outcome": "ok", "reply": {..}, "detail": "", "queued": .2, "ran": 8.1}

crc: of the code and data that answer, the example, its seed and the actions or
the response. The first line of (serial, sample, turn, kind, crc) counts, unless
a later one says that its worker answered the call once more: it is then VOID.
"""

from collections.abc import Sequence
import contextlib
import json
import os
import re
from typing import Any, NamedTuple
import zlib

from absl import logging
from etils import epath

from rl_jax.verification import former_journal, journal_lines

FOLDER = 'answers'
SERIALS = 64  # of one file
VOID = 'stray'  # the outcome of a call that was answered twice
_NAME = re.compile(r'process_(\d+)_(\d+)\.jsonl')
_KEYS = ['of', 'turn', 'kind', 'crc', 'outcome', 'reply', 'detail']
_KEYS += ['queued', 'ran']


class Key(NamedTuple):
  """A call: no other one of the run has the same.

  serial: of the group or round. sample: of it. turn: of the episode. crc:
  CRC-32 of all that the answer may depend on but the task's code and data.
  """

  serial: int
  sample: int
  turn: int
  kind: str
  crc: int


class KeptAnswer(NamedTuple):
  """The answer of a call: its outcome, and a reply if that is 'ok'."""

  outcome: str
  reply: dict[str, Any] | None
  detail: str = ''
  queued: float = 0.0  # seconds before the call
  ran: float = 0.0  # and during it


class AnswerJournal:
  """Files of answers in a folder, SERIALS in each.

  folder: None keeps nothing. task: text that tells apart what
  answers (code and data); lines that another wrote are not used. writer: the
  runtime.writer.Writer of the directory. process: of several. every_line: a
  line is on the disk before it is used, not only out of this process.
  """

  def __init__(
    self,
    folder: str | os.PathLike[str] | None,
    task: str = '',
    writer: Any = None,
    *,
    process: int = 0,
    every_line: bool = False,
  ):
    self._folder = None if folder is None else epath.Path(folder)
    self._task_crc = zlib.crc32(task.encode())
    self._writer, self._process = writer, process
    self._every_line = every_line
    self._lines: dict[Key, KeptAnswer] = {}  # crc: with the task's
    self._files: dict[int, Any] = {}  # open, by number
    self._owned = False  # whether earlier files are this writer's copies
    self._failures = 0
    for path in self._paths().values():
      for key, said in _read(path):
        if said.outcome == VOID:
          self._lines[key] = said
        self._lines.setdefault(key, said)

  def known(self, key: Key) -> KeptAnswer | None:
    """The answer of a call, if there is one of the same inputs."""
    return self._lines.get(self._with_task(key))

  def add(self, key: Key, said: KeptAnswer) -> None:
    """Writes an answer, which may be used then."""
    if self._folder is None:
      return
    key = self._with_task(key)
    self._lines[key] = said
    line = {
      'of': [key.serial, key.sample],
      'turn': key.turn,
      'kind': key.kind,
      'crc': key.crc,
      'outcome': said.outcome,
      'reply': said.reply,
      'detail': said.detail,
      'queued': round(said.queued, 6),
      'ran': round(said.ran, 6),
    }
    self._append(line)

  def sync(self) -> None:
    """Puts what was added on the disk."""
    try:
      for file in self._files.values():
        os.fsync(file.fileno())
    except OSError as error:
      self._warn(error)

  def forget(self, serial: int) -> None:
    """Deletes files of which no serial is `serial` or later.

    What a committed checkpoint has passed: after a save that fails the run
    continues before it.
    """
    self._lines = {k: v for k, v in self._lines.items() if k.serial >= serial}
    for number, path in self._paths().items():
      if (number + 1) * SERIALS <= serial:
        self._close(number)
        with contextlib.suppress(OSError):
          path.unlink()

  def close(self) -> None:
    """Closes the files."""
    for number in list(self._files):
      self._close(number)

  def _with_task(self, key):
    return key._replace(crc=zlib.crc32(b'%d' % key.crc, self._task_crc))

  def _paths(self):
    """Files of this process by their number."""
    found = {}
    if self._folder is not None and self._folder.exists():
      for path in self._folder.iterdir():
        match = _NAME.fullmatch(path.name)
        if match and int(match[1]) == self._process:
          found[int(match[2])] = path
    return dict(sorted(found.items()))

  def _append(self, line):
    number = line['of'][0] // SERIALS
    try:
      file = self._files.get(number)
      if file is None:
        file = self._files[number] = self._opened(number)
      self._writer.check()  # of a file that was opened before
      file.write(journal_lines.encode(line))
      file.flush()
      if self._every_line:
        os.fsync(file.fileno())
    except OSError as error:
      self._warn(error)
      self._close(number)

  def _opened(self, number):
    assert self._folder is not None
    self._folder.mkdir(parents=True, exist_ok=True)
    if not self._owned:
      # Another process that wrote here, and was paused, has the former files.
      for path in self._paths().values():
        lines = [line for line in path.read_bytes().splitlines(keepends=True)]
        with self._writer.replacing(path) as file:
          file.write(b''.join(x for x in lines if x.endswith(b'\n')))
      self._owned = True
    name = f'process_{self._process}_{number:08d}.jsonl'
    return (self._folder / name).open('ab')

  def _warn(self, error):
    """Once: a full disk fails every call."""
    self._failures += 1
    if self._failures == 1:
      text = '%s cannot be written: %s (later failures are not reported)'
      logging.warning(text, self._folder, error)

  def _close(self, number):
    file = self._files.pop(number, None)
    with contextlib.suppress(OSError):  # no space for what is buffered
      if file is not None:
        file.close()


def _read(path):
  """The answers of a file whose lines are whole; the last one may be torn."""
  found, damaged = [], 0
  for text in path.read_bytes().split(b'\n')[:-1]:
    try:
      found.append(_checked(journal_lines.decode(text, whole=True)))
    except ValueError:
      damaged += 1
  if damaged:
    logging.warning(
      '%s: %d lines are damaged: these calls are made again', path, damaged
    )
  return found


def _checked(line):
  """(key, answer) of a line."""
  if list(line) != _KEYS:
    raise ValueError(f'it has not the keys {", ".join(_KEYS)}')
  of, turn, kind, crc, outcome, reply, detail, queued, ran = line.values()
  if not isinstance(of, list) or len(of) != 2:
    raise ValueError('it names no call')
  serial, sample = of
  if any(type(x) is not int for x in (serial, sample, turn, crc)):
    raise ValueError('it names no call')
  if not all(isinstance(text, str) for text in (kind, outcome, detail)):
    raise ValueError('it has no text as outcome')
  if not isinstance(reply, dict) and (reply is not None or outcome == 'ok'):
    raise ValueError('it has no reply')
  key = Key(serial, sample, turn, kind, crc)
  return key, KeptAnswer(outcome, reply, detail, queued, ran)


class NumberedRounds:
  """Base of the calls of a pool in numbered rounds, whose answers are kept.

  Rounds are numbered from the start of the run; the number is part of a
  checkpoint and the serial of their lines.

  pool: makes calls; it has `counts` and `close`. workdir: of the journal; None:
  there is none. former: the name of the file of an earlier version, which is
  read as well. Others: see AnswerJournal.
  """

  def __init__(
    self,
    pool: Any,
    workdir: str | os.PathLike[str] | None = None,
    task: str = '',
    writer: Any = None,
    *,
    process: int = 0,
    former: str = former_journal.FILE,
    every_line: bool = False,
  ):
    self.pool, self._number = pool, 0
    self._former: dict[int, dict[str, Any]] = {}
    self._former_path, folder = None, None
    if workdir is not None:
      folder = epath.Path(workdir) / FOLDER
      self._former_path = epath.Path(workdir) / former
      self._former = former_journal.read(self._former_path)
    self._task_crc = zlib.crc32(task.encode())
    self._journal = AnswerJournal(
      folder, task, writer, process=process, every_line=every_line
    )

  def _formerly(
    self, number: int, inputs: Sequence[Sequence[Any]]
  ) -> list[list[Any]] | None:
    """[reply, kind, detail] of each call of a round, as earlier versions wrote.

    None: they did not, or of other inputs.
    """
    line = self._former.get(number)
    if line is None or len(line['outcomes']) != len(inputs):
      return None
    crc = zlib.crc32(json.dumps(inputs).encode(), self._task_crc)
    return line['outcomes'] if line['crc'] == crc else None

  def mark(self) -> int:
    """The number of rounds so far, to be stored in a checkpoint."""
    self._journal.sync()
    return self._number

  def restore(self, rounds: int) -> None:
    """Continues after that many rounds."""
    self._number = rounds

  def forget(self, rounds: int) -> None:
    """Deletes what a committed checkpoint, which has marked it, has passed."""
    self._journal.forget(rounds)
    if self._former and max(self._former) < rounds:
      self._former = {}
      assert self._former_path is not None
      with contextlib.suppress(OSError):
        self._former_path.unlink()

  def counts(self) -> dict[str, int]:
    """Calls of the pool, by kind; journaled ones are not."""
    return self.pool.counts()

  def close(self) -> None:
    """Closes the pool and the files."""
    self.pool.close()
    self._journal.close()


def crc_of(inputs: Sequence[Any]) -> int:
  """The CRC-32 of the inputs of a call, as of a Key."""
  return zlib.crc32(json.dumps(inputs).encode())
