"""A reward that is known is not asked for again, by rewards of any version."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zlib

import pytest

from rl_jax.judging.verifiers import POSITION, TextVerifier
from rl_jax.runtime.writer import sole_writer
from rl_jax.tasks import Example
from rl_jax.verification import journal_lines
from rl_jax.verification.former_journal import FILE, read
from rl_jax.verification.journal import FOLDER
from rl_jax.verification.numbered_rewards import NumberedRewards
from rl_jax.verification.pool import Outcome, VerifierPool


class Unrepeatable:
  """A pool whose outcomes differ at every call.

  late: a place at which the process is killed, after the others have answered.
  """

  def __init__(self, first=0, late=None):
    self._numbers = itertools.count(first)
    self.asked, self._late = [], late

  def reward(self, examples, responses, known, heard):
    """Outcomes of those that are not known, the last one first."""
    found = dict(known)
    places = [n for n in range(len(examples)) if n not in known]
    for place in sorted(places, key=lambda n: (n == self._late, -n)):
      if place == self._late:
        os.kill(os.getpid(), signal.SIGKILL)
      self.asked.append(place)
      number = next(self._numbers)
      found[place] = Outcome({'outcome': 0.1 * number})
      if responses[place] == 'slow':
        found[place] = Outcome(None, 'timeout', f'killed {number}')
      heard(place, found[place], 0.1, 0.2)
    return [found[place] for place in range(len(examples))]

  def close(self):
    """Nothing to close."""


def examples(count):
  return [Example(prompt='', answer='', id=i) for i in range(count)]


def texts(call):
  return [f'{call}', 'slow']


_OPENED = []


@pytest.fixture(autouse=True)
def _closed():
  yield
  while _OPENED:
    _OPENED.pop().close()


def numbered(pool, folder, task='task', **more):
  _OPENED.append(NumberedRewards(pool, folder, task, sole_writer(), **more))
  return _OPENED[-1]


def run(folder, calls, first=0, restore=None, marks=(), forget=None):
  """Outcomes of calls with numbers, and how many samples the pool has judged.

  marks: calls after which a save begins. forget: after which one is committed.
  """
  pool = Unrepeatable(first)
  rewards = numbered(pool, folder)
  if restore is not None:
    rewards.restore(restore)
  outcomes = {}
  for call in calls:
    outcomes[call] = rewards.reward(examples(2), texts(call))
    if call in marks:
      assert rewards.mark() == call + 1
    if call == forget:
      rewards.forget(rewards.mark())
  rewards.close()
  return outcomes, len(pool.asked)


def test_a_killed_run_sees_the_same_outcomes_again(tmp_path):
  """E0 with timeouts among them; later calls are judged for the first time."""
  first, _ = run(tmp_path, range(5))
  again, judged = run(tmp_path, range(7), first=1000)
  assert {n: again[n] for n in range(5)} == first
  assert judged == 4 and again[6][0].components['outcome'] >= 100
  third, judged = run(tmp_path, range(7), first=2000)
  assert third == again and judged == 0
  assert first[0][1].error == 'timeout: killed 0'


def test_a_run_continues_after_its_checkpoint(tmp_path):
  """Saved after call 2, killed after call 4: calls 3 and 4 are repeated."""
  first, _ = run(tmp_path, range(5), marks=(2,))
  again, judged = run(tmp_path, range(3, 6), first=1000, restore=3)
  assert {n: again[n] for n in (3, 4)} == {n: first[n] for n in (3, 4)}
  assert judged == 2


def test_saves_that_fail_advance_nothing(tmp_path):
  """E0: however many calls were started and not committed, all calls are
  repeated.
  """
  first, _ = run(tmp_path, range(9), marks=range(9))
  assert run(tmp_path, range(9), first=1000, marks=range(9)) == (first, 0)


def test_a_run_that_was_killed_beside_a_slow_reward_asks_for_that_one(tmp_path):
  """SIGKILL while one of four samples is judged; the others are known, E0."""
  script = (
    'import sys; sys.path[:0] = sys.argv[2:]\n'
    'import test_numbered_rewards as t\n'
    'rewards = t.numbered(t.Unrepeatable(late=1), sys.argv[1])\n'
    'rewards.reward(t.examples(4), list("abcd"))\n'
  )
  folder = os.path.dirname(__file__)
  arguments = [sys.executable, '-c', script, tmp_path, folder, *sys.path]
  ended = subprocess.run([str(x) for x in arguments], check=False)
  assert ended.returncode == -signal.SIGKILL
  pool = Unrepeatable(first=100)
  outcomes = numbered(pool, tmp_path).reward(examples(4), list('abcd'))
  assert pool.asked == [1]
  found = [round(10 * one.components['outcome']) for one in outcomes]
  assert found == [2, 100, 1, 0]  # of the first process: places 3, 2, 0


_KILLED = """
import sys
sys.path[:0] = sys.argv[3:]
import misbehaving_tasks
import test_numbered_rewards as t
from rl_jax.verification.pool import VerifierPool
pool = VerifierPool(misbehaving_tasks.Misbehaving(), 2, 300.0)
t.numbered(pool, sys.argv[1]).reward(t.examples(4), t.noted(sys.argv[2]))
"""


def noted(calls):
  """Responses whose rewards are written to a file as they are asked for."""
  return [f'noted {calls} {name}' for name in ('a', 'slow', 'b', 'c')]


def test_a_trainer_that_is_killed_beside_a_slow_reward_asks_for_it_only(
  tmp_path, monkeypatch
):
  """With its workers: the reward function counts its calls."""
  calls, folder = tmp_path / 'calls', os.path.dirname(__file__)
  paths = [folder, os.path.dirname(folder), *sys.path]
  arguments = [sys.executable, '-c', _KILLED, tmp_path, calls, *paths]
  process = subprocess.Popen([str(x) for x in arguments])
  ends = time.monotonic() + 120
  while _lines(tmp_path / FOLDER) < 3 and time.monotonic() < ends:
    time.sleep(0.01)
  process.kill()
  process.wait()
  assert sorted(calls.read_text().split()) == ['a', 'b', 'c', 'slow']
  for path in paths[:2]:
    monkeypatch.syspath_prepend(path)
  import misbehaving_tasks

  with VerifierPool(misbehaving_tasks.Misbehaving(), 2, 300.0) as pool:
    outcomes = numbered(pool, tmp_path).reward(examples(4), noted(calls))
  assert sorted(calls.read_text().split()) == ['a', 'b', 'c', 'slow', 'slow']
  assert [one.kind for one in outcomes] == ['ok'] * 4
  assert outcomes[1].components == {'outcome': 5.0}


def _lines(folder):
  return sum(x.read_bytes().count(b'\n') for x in folder.glob('*'))


def test_a_call_that_was_answered_twice_stays_void(tmp_path):
  """The second answer counts in a run that continues, too."""

  class Forged(Unrepeatable):
    """Notices only later that an answer was forged."""

    def reward(self, examples, responses, known, heard):
      found = super().reward(examples, responses, known, heard)
      if not known:
        found[0] = Outcome(None, 'stray', 'it was answered twice')
        heard(0, found[0], 0.0, 0.0)
      return found

  first = numbered(Forged(), tmp_path).reward(examples(2), ['a', 'b'])
  _OPENED.pop().close()
  again = numbered(Unrepeatable(), tmp_path).reward(examples(2), ['a', 'b'])
  assert first == again and again[0].kind == 'stray'


def test_lines_of_other_responses_are_not_used(tmp_path):
  run(tmp_path, [0, 1])
  rewards = numbered(Unrepeatable(first=50), tmp_path)
  (outcome,) = rewards.reward(examples(1), ['another'])
  assert outcome.components == {'outcome': 5.0}


def test_lines_of_another_task_are_not_used(tmp_path):
  """A reward function that was corrected is called; the same one is not."""
  found = []
  for first, task in enumerate(['old', 'old', 'new']):
    rewards = numbered(Unrepeatable(first=10 * first), tmp_path, task)
    (outcome,) = rewards.reward(examples(1), ['same'])
    found.append(outcome.components['outcome'])
    rewards.close()
  assert found == [0.0, 0.0, 2.0]


@pytest.mark.parametrize('reply', [{'outcome': '1'}, {'outcome': None}])
def test_rewards_that_are_no_numbers_are_not_used(tmp_path, reply):
  """A file that another program wrote, with the right checksums."""
  run(tmp_path, [0])
  (path,) = (tmp_path / FOLDER).iterdir()
  lines = map(journal_lines.decode, path.read_bytes().splitlines())
  changed = [
    {**one, 'reply': reply} if one['outcome'] == 'ok' else one for one in lines
  ]
  path.write_bytes(b''.join(map(journal_lines.encode, changed)))
  again, judged = run(tmp_path, [0], first=7)
  assert judged == 1
  assert again[0][0].components == {'outcome': pytest.approx(0.7)}


def test_without_a_folder_nothing_is_written(tmp_path):
  _, judged = run(None, range(3), marks=(1,))
  assert judged == 6 and not any(tmp_path.iterdir())


def former(path, calls, checksums=True):
  """Writes what an earlier version has kept of calls: outcomes by number."""
  lines, found = [], {}
  for call in calls:
    inputs = json.dumps([[n, text] for n, text in enumerate(texts(call))])
    outcomes = [[{'outcome': float(call)}, 'ok', ''], [None, 'timeout', 'late']]
    crc = zlib.crc32(inputs.encode(), zlib.crc32(b'task'))
    line = {'call': call, 'crc': crc, 'outcomes': outcomes}
    found[call] = [Outcome(*one) for one in outcomes]
    lines.append(
      journal_lines.encode(line)
      if checksums
      else json.dumps(line).encode() + b'\n'
    )
  path.write_bytes(b''.join(lines))
  return found


@pytest.mark.parametrize('checksums', [True, False])
def test_a_journal_of_an_earlier_version_is_read(tmp_path, checksums):
  """E0: a line a call; the file goes once a checkpoint has passed it."""
  path = tmp_path / FILE
  first = former(path, range(3), checksums)
  again, judged = run(tmp_path, range(4), first=1000, forget=2)
  assert {n: again[n] for n in range(3)} == first and judged == 2
  assert not path.exists()


def test_a_former_file_is_used_up_to_its_torn_line(tmp_path):
  """E0: cut at every byte of the last line."""
  path = tmp_path / FILE
  first = former(path, range(3))
  whole = path.read_bytes()
  start = whole[:-1].rindex(b'\n') + 1
  for end in range(start, len(whole), 7):
    path.write_bytes(whole[:end])
    assert list(read(path)) == [0, 1]
  again, _ = run(tmp_path, range(2))
  assert again == {n: first[n] for n in range(2)}


def test_every_flipped_bit_of_a_former_line_is_noticed(tmp_path, caplog):
  """The bits are those of rewards, kinds, keys and checksums."""
  path = tmp_path / FILE
  former(path, range(2))
  whole = path.read_bytes()
  start = whole.index(b'\n') + 1
  for place in range(start, len(whole) - 1):
    for bit in range(8):
      damaged = bytearray(whole)
      damaged[place] ^= 1 << bit
      path.write_bytes(damaged)
      assert list(read(path)) == [0], (place, bit)
  assert f'{FILE}:2 is damaged (its checksum differs)' in caplog.text


@pytest.mark.parametrize(
  'line',
  [
    '[]',
    '3',
    'null',
    '{}',
    '{"call": 1}',
    '{"call": [1], "crc": 1, "outcomes": []}',
    '{"call": "1", "crc": 1, "outcomes": []}',
    '{"call": 1, "crc": null, "outcomes": []}',
    '{"call": -1, "crc": 1, "outcomes": []}',
    '{"call": 1, "crc": 1, "outcomes": {}}',
    '{"call": 1, "crc": 1, "outcomes": [3]}',
    '{"call": 1, "crc": 1, "outcomes": [["x", "ok", ""]]}',
    '{"call": 1, "crc": 1, "outcomes": [[null, "ok", ""]]}',
    '{"call": 1, "crc": 1, "outcomes": [[{}, "ok", 3]]}',
    '{"call": 1, "crc": 1, "outcomes": [[{}, "ok"]]}',
    '{"call": 1, "crc": 1, "outcomes": [], "more": 1}',
    '[' * 100_000,
    '9' * 5000,
    '\x00\x00',
    '{"call": 1, "crc": 1, "outcomes": [], "line_crc": 7}',
  ],
)
def test_a_former_line_of_another_form_ends_the_file(tmp_path, caplog, line):
  """The warning names the line."""
  path = tmp_path / FILE
  former(path, range(3))
  lines = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(lines[0] + line.encode() + b'\n' + lines[2])
  assert list(read(path)) == [0]
  assert f'{FILE}:2 is damaged' in caplog.text


@pytest.mark.parametrize(
  'outcomes',
  [
    [],
    [[{'outcome': '1'}, 'ok', ''], [None, 'error', '']],
    [[{'outcome': None}, 'ok', ''], [None, 'error', '']],
  ],
)
def test_former_outcomes_that_do_not_fit_the_call_are_not_used(
  tmp_path, outcomes
):
  """A file that another program wrote, with the right checksums."""
  path = tmp_path / FILE
  former(path, [0])
  line = journal_lines.decode(path.read_bytes()[:-1])
  path.write_bytes(journal_lines.encode({**line, 'outcomes': outcomes}))
  _, judged = run(tmp_path, [0], first=7)
  assert judged == 2


def test_a_run_that_continues_knows_the_components_of_lost_samples(tmp_path):
  """A checkpoint has those that samples have had: E0 of a lost one's zeros."""

  class Named(Unrepeatable):
    """A pool whose samples have had components."""

    def __init__(self):
      super().__init__()
      self.found = ['outcome', 'style']

    def names(self):
      return self.found

    def add_names(self, names):
      self.found = sorted({*self.found, *names})

  saved = TextVerifier(numbered(Named(), tmp_path)).host()
  again = Named()
  again.found = ['outcome']
  TextVerifier(numbered(again, tmp_path)).restore({}, saved)
  assert again.found == ['outcome', 'style']
  TextVerifier(numbered(again, tmp_path)).restore({}, {POSITION: 3})  # former
  assert again.found == ['outcome', 'style']
