"""Answers of episodes are written before they are used, and read once."""

import itertools
import os
import signal
import subprocess
import sys
import zlib

import pytest

from rl_jax.episodes.calls import Calls, Request
from rl_jax.episodes.journal import JournaledCalls, NumberedCalls
from rl_jax.runtime.writer import sole_writer
from rl_jax.tasks import Example
from rl_jax.verification import journal_lines, sessions
from rl_jax.verification.journal import AnswerJournal
from rl_jax.verification.tally import Tally


def _request(serial, turn=1, crc=5):
  return Request(serial, 0, turn, 'step', None, crc)


_OPENED = []  # journals of a test


@pytest.fixture(autouse=True)
def _closed():
  yield
  while _OPENED:
    _OPENED.pop().close()


def _journal(folder, task='', **more):
  _OPENED.append(AnswerJournal(folder, task, sole_writer(), **more))
  return _OPENED[-1]


def _numbered(pool, folder):
  _OPENED.append(NumberedCalls(pool, folder, 'task', sole_writer()))
  return _OPENED[-1]


class _Pool:
  """A pool whose answers differ at every call."""

  def __init__(self, late=()):
    self._numbers, self._late = itertools.count(), late
    self.asked, self.waiting = [], []

  def end(self, episodes):
    """No episode lives."""

  def submit(self, request, order):
    self.waiting.append(request)

  def poll(self, timeout):
    request = self.waiting.pop()  # the newest first
    if request.episode[1] in self._late:
      os.kill(os.getpid(), signal.SIGKILL)
    self.asked.append(request.episode)
    reply = {'observation': str(next(self._numbers))}
    return [sessions.Made(request, sessions.Answer(reply), 0.1, 0.2)]

  def counts(self):
    return Tally(()).counts()

  def made_again(self):
    return {}

  def close(self):
    """No process."""


def _requests(number, rows=3, actions=('a',)):
  example = Example(prompt='', answer='', id=4)
  return [
    sessions.Request((number, row), example, 1, actions) for row in range(rows)
  ]


def test_known_answers_cost_no_call(tmp_path, delayed_calls):
  """E0; of another task, another input or another turn they are not known."""
  made = []

  def make(request):
    made.append(request.key)
    return 'ok', sessions.Answer({'observation': f'call {len(made)}'})

  def run(task, requests):
    queue = delayed_calls.DelayedCalls(make, most=1)
    calls = JournaledCalls(queue, _journal(tmp_path, task))
    for request in requests:
      calls.submit(request)
    found = {}
    while answers := calls.poll(None):
      found |= {one.request.key: one.reply for one in answers}
    calls.close()
    return found

  requests = [_request(0), _request(1), _request(0, turn=2)]
  first = run('task', requests)
  assert run('task', requests) == first and len(made) == 3
  run('other', requests)
  assert len(made) == 6
  run('task', [_request(0, crc=6), _request(0, turn=3)])
  assert len(made) == 8
  assert run('task', requests) == first and len(made) == 8


def test_numbered_rounds_are_repeated(tmp_path):
  """E0: after any number of them, and after a checkpoint; marks are theirs."""

  def run(rounds, restore=0, forget=None):
    pool = _Pool()
    calls = _numbered(pool, tmp_path)
    calls.restore(restore)
    found = [calls.ask(_requests(number)) for number in rounds]
    assert calls.mark() == restore + len(rounds)
    if forget is not None:
      calls.forget(forget)
    calls.close()
    return found, len(pool.asked)

  first, asked = run(range(3))
  assert asked == 9
  assert run(range(3)) == (first, 0)
  again, asked = run(range(1, 5), restore=1)
  assert again[:2] == first[1:] and asked == 6


def test_a_round_that_was_killed_repeats_no_answer(tmp_path):
  """SIGKILL while one of three calls runs: only that one is made again."""
  script = (
    'import sys; sys.path[:0] = sys.argv[2:]\n'
    'import test_answer_journal as t\n'
    'pool = t._Pool(late=(0,))\n'
    'calls = t._numbered(pool, sys.argv[1])\n'
    'calls.ask(t._requests(0))\n'
  )
  folder = os.path.dirname(__file__)
  arguments = [sys.executable, '-c', script, tmp_path, folder, *sys.path]
  ended = subprocess.run([str(x) for x in arguments], check=False)
  assert ended.returncode == -signal.SIGKILL
  pool = _Pool()
  calls = _numbered(pool, tmp_path)
  answers = calls.ask(_requests(0))
  assert pool.asked == [(0, 0)]
  texts = [one.reply['observation'] for one in answers]
  assert texts == ['0', '1', '0']  # of the first process: rows 2, 1


def test_a_journal_of_an_earlier_version_is_read(tmp_path):
  """A line a round; it goes once a checkpoint has passed it."""
  requests = _requests(0)
  text = str([[4, 1, 'a']] * 3).replace("'", '"').encode()
  line = {
    'call': 0,
    'crc': zlib.crc32(text, zlib.crc32(b'task')),
    'outcomes': [[{'observation': str(n)}, 'ok', ''] for n in range(3)],
  }
  path = tmp_path / 'verifications.jsonl'
  path.write_bytes(journal_lines.encode(line))
  pool = _Pool()
  calls = _numbered(pool, tmp_path)
  answers = calls.ask(requests)
  assert [one.reply['observation'] for one in answers] == ['0', '1', '2']
  assert not pool.asked
  calls.ask(_requests(1))
  assert len(pool.asked) == 3
  calls.forget(calls.mark())
  assert not path.exists()


def test_answers_that_are_kept_are_journaled(tmp_path):
  """So that a run that continues opens the same prompts."""
  kept = {}
  for process in range(2):
    pool = _Pool()
    calls = _numbered(pool, tmp_path)
    first = calls.ask(_requests(0, rows=1, actions=()), kept)
    again = calls.ask(_requests(1, rows=1, actions=()), kept)
    assert first == again and len(pool.asked) == (process == 0)
    kept = {}


def test_calls_are_a_base():
  """A queue has all of its methods."""
  with pytest.raises(TypeError, match='abstract'):
    Calls()
