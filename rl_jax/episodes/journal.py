"""Answers of calls, kept until the next checkpoints hold what came of them.

An answer is in a file before it is used: it may depend on time, and a call may
be slow or cost money. A run that continues makes no call whose answer is known.
A line is an answer:

  {"of": [serial, sample], "turn": 3, "kind": "step", "crc": ..,
   "outcome": "ok", "reply": {..}, "detail": "", "queued": .2, "ran": 8.1}

crc: of the code and data that answer, the example, its seed and the actions.
The first line of (serial, sample, turn, kind, crc) counts.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import json
import os
import re
from typing import Any
import zlib

from absl import logging
from etils import epath

from rl_jax.episodes.calls import (
  Answer,
  Calls,
  Request,
  SessionCalls,
  outcome_of,
)
from rl_jax.verification import journal as journal_of_calls
from rl_jax.verification import journal_lines, sessions

FOLDER = 'answers'
SERIALS = 64  # of one file
_NAME = re.compile(r'process_(\d+)_(\d+)\.jsonl')
_KEYS = ['of', 'turn', 'kind', 'crc', 'outcome', 'reply', 'detail']
_KEYS += ['queued', 'ran']

Key = tuple[int, int, int, str, int]


# Of the examples of one split: answers by the example's id, and by what
# partners have answered before.
Kept = dict[tuple[int, tuple[str, ...]], sessions.Answer]


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
    self._lines: dict[Key, dict[str, Any]] = {}
    self._files: dict[int, Any] = {}  # open, by number
    self._owned = False  # whether earlier files are this writer's copies
    self._failures = 0
    for path in self._paths().values():
      for line in _read(path):
        self._lines.setdefault(_key(line), line)

  def known(self, request: Request) -> dict[str, Any] | None:
    """The line of a request, if it has one of the same inputs."""
    return self._lines.get((*request.key, self._crc(request)))

  def add(self, answer: Answer) -> None:
    """Writes an answer, which may be used then."""
    if self._folder is None:
      return
    request, result = answer.request, answer.reply
    line = {
      'of': [request.serial, request.sample],
      'turn': request.turn,
      'kind': request.kind,
      'crc': self._crc(request),
      'outcome': result.kind,
      'reply': result.reply,
      'detail': result.detail,
      'queued': round(answer.queued, 6),
      'ran': round(answer.ran, 6),
    }
    self._lines[_key(line)] = line
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
    self._lines = {k: v for k, v in self._lines.items() if k[0] >= serial}
    for number, path in self._paths().items():
      if (number + 1) * SERIALS <= serial:
        self._close(number)
        with contextlib.suppress(OSError):
          path.unlink()

  def close(self) -> None:
    """Closes the files."""
    for number in list(self._files):
      self._close(number)

  def _crc(self, request):
    return zlib.crc32(b'%d' % request.crc, self._task_crc)

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


def _key(line) -> Key:
  return *line['of'], line['turn'], line['kind'], line['crc']


def _read(path):
  """The lines of a file that are whole; the last one may be torn."""
  found, damaged = [], 0
  for text in path.read_bytes().split(b'\n')[:-1]:
    try:
      line = journal_lines.decode(text, whole=True)
      found.append(_checked(line))
    except ValueError:
      damaged += 1
  if damaged:
    logging.warning(
      '%s: %d lines are damaged: these calls are made again', path, damaged
    )
  return found


def _checked(line):
  if list(line) != _KEYS:
    raise ValueError(f'it has not the keys {", ".join(_KEYS)}')
  of, reply = line['of'], line['reply']
  numbers = isinstance(of, list) and [*of, line['turn'], line['crc']]
  texts = (line['kind'], line['outcome'], line['detail'])
  if (
    not numbers or len(numbers) != 4 or any(type(x) is not int for x in numbers)
  ):
    raise ValueError('it names no call')
  if not all(isinstance(text, str) for text in texts):
    raise ValueError('it has no text as outcome')
  if not isinstance(reply, dict) and (reply is not None or texts[1] == 'ok'):
    raise ValueError('it has no reply')
  return line


class JournaledCalls(Calls):
  """Calls whose answers are in a journal before they are returned.

  Those that it knows are answered by the next `poll`, without a call.
  """

  def __init__(self, calls: Calls, journal: AnswerJournal):
    self._calls, self._journal = calls, journal
    self._known: list[Answer] = []

  def submit(self, request: Request) -> None:
    line = self._journal.known(request)
    if line is None:
      self._calls.submit(request)
      return
    result = sessions.Answer(line['reply'], line['outcome'], line['detail'])
    self._known.append(Answer(request, outcome_of(result), result))

  def poll(self, timeout: float | None) -> list[Answer]:
    found, self._known = self._known, []
    if not found:
      found = self._calls.poll(timeout)
      for answer in found:
        self._journal.add(answer)
    return found

  def close(self) -> None:
    self._calls.close()
    self._journal.close()


class NumberedCalls:
  """The calls of a pool in numbered rounds, of which each waits for all.

  Rounds are numbered from the start of the run; the number is part of a
  checkpoint and the serial of their lines. workdir: of the journal; None: there
  is none. Others: see AnswerJournal. A journal of an earlier version, which has
  a line a round, is read as well.
  """

  def __init__(
    self,
    pool: sessions.SessionPool,
    workdir: str | os.PathLike[str] | None = None,
    task: str = '',
    writer: Any = None,
    *,
    process: int = 0,
    former: str = journal_of_calls.FILE,
    every_line: bool = False,
  ):
    self.pool, self._number = pool, 0
    self._again: dict[str, int] = {}
    self._former: dict[int, dict[str, Any]] = {}
    self._former_path, folder = None, None
    if workdir is not None:
      folder = epath.Path(workdir) / FOLDER
      self._former_path = epath.Path(workdir) / former
      self._former = journal_of_calls.read(self._former_path)
    self._task_crc = zlib.crc32(task.encode())
    self._journal = AnswerJournal(
      folder, task, writer, process=process, every_line=every_line
    )
    self._calls = JournaledCalls(SessionCalls(pool), self._journal)
    self._streams: dict[int, int] = {}  # rounds of episodes, by number
    self._aside: list[Answer] = []  # of streams, which came during `ask`
    self.heard: Callable[[list[Answer]], None] | None = None  # of each answer

  def ask(
    self,
    requests: Sequence[sessions.Request],
    kept: Kept | None = None,
  ) -> list[sessions.Answer]:
    """The answers, in order; requests are of different episodes of one round.

    kept: answers by example and actions, which are used in place of calls; the
      new ones that succeed are put there.
    """
    number, self._number = self._number, self._number + 1
    inputs = [[r.example.id, r.seed, *r.actions] for r in requests]
    former = self._formerly(number, inputs)
    if former is not None:
      return former
    found: dict[int, sessions.Answer] = {}  # by place
    rounds = {request.episode[0] for request in requests}
    rounds |= {*self._streams.values()}
    self.pool.end(lambda episode: episode[0] not in rounds)
    for place, request in enumerate(requests):
      one = Request(
        serial=number,
        sample=place,
        turn=len(request.actions),
        kind=sessions.kind_of(request),
        payload=request,
        crc=zlib.crc32(json.dumps(inputs[place]).encode()),
      )
      known = (kept or {}).get((request.example.id, request.actions))
      if known is None or self._journal.known(one):
        self._calls.submit(one)
      else:
        self._journal.add(Answer(one, 'ok', known))
        found[place] = known
    while len(found) < len(requests):
      for answer in self._polled(None):
        if answer.request.serial == number:
          found[answer.request.sample] = answer.reply
        else:
          self._aside.append(answer)
    for place, request in enumerate(requests):
      if kept is not None and found[place].error is None:
        kept[request.example.id, request.actions] = found[place]
    return [found[place] for place in range(len(requests))]

  def stream(self, episodes: int) -> int:
    """The number of a new round, whose calls are made one by one.

    It is the serial of each call. episodes: the round in the names of its
    episodes, which stay until `over`.
    """
    number, self._number = self._number, self._number + 1
    self._streams[number] = episodes
    return number

  def submit(self, request: Request) -> None:
    """Puts a call of a stream into the queue."""
    self._calls.submit(request)

  def poll(self, timeout: float | None) -> list[Answer]:
    """Answers of all streams; see Calls."""
    found, self._aside = self._aside, []
    return found or self._polled(timeout)

  def _polled(self, timeout):
    found = self._calls.poll(timeout)
    if self.heard is not None:
      self.heard(found)
    return found

  def over(self, number: int) -> None:
    """The episodes of a stream are over."""
    episodes = self._streams.pop(number)
    self.pool.end(lambda episode: episode[0] == episodes)

  @contextlib.contextmanager
  def repeating(self, number: int) -> Iterator[None]:
    """Rounds inside have the numbers from `number` on, once more."""
    before, self._number = self._number, number
    try:
      yield
    finally:
      self._number = max(before, self._number)

  def _formerly(self, number, inputs):
    """The answers of a round in the journal of an earlier version, or None."""
    line = self._former.get(number)
    if line is None or len(line['outcomes']) != len(inputs):
      return None
    crc = zlib.crc32(json.dumps(inputs).encode(), self._task_crc)
    if line['crc'] != crc:
      return None
    return [sessions.Answer(*one) for one in line['outcomes']]

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

  def made_again(self) -> dict[str, int]:
    """Calls since the last time that were repeated or made twice."""
    known, self._again = self._again, self.pool.made_again()
    return {name: n - known.get(name, 0) for name, n in self._again.items()}

  def counts(self) -> dict[str, int]:
    """Calls of the pool, by kind; journaled ones are not."""
    return self.pool.counts()

  def close(self) -> None:
    """Closes the pool and the files."""
    self.pool.close()
    self._calls.close()
