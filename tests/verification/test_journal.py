"""A repeated reward call has the outcomes of the first time."""

import itertools
import logging

import pytest

from rl_jax.runtime.writer import sole_writer
from rl_jax.tasks import Example
from rl_jax.verification import journal as journal_lib
from rl_jax.verification import journal_lines
from rl_jax.verification.journal import JournaledPool
from rl_jax.verification.pool import Outcome


class Unrepeatable:
  """A pool whose outcomes differ at every call."""

  def __init__(self, first=0):
    self._numbers = itertools.count(first)
    self.calls = 0

  def reward(self, examples, responses):
    self.calls += 1
    return [
      Outcome(None, 'timeout', f'killed {next(self._numbers)}')
      if response == 'slow'
      else Outcome({'outcome': 0.1 * next(self._numbers)})
      for response in responses
    ]

  def close(self):
    """Nothing to close."""


def examples(count):
  return [Example(prompt='', answer='', id=i) for i in range(count)]


def texts(call):
  return [f'{call}', 'slow']


def run(path, calls, first=0, restore=None, marks=(), forget=None):
  """Outcomes of calls with numbers, and how many the pool has judged.

  marks: calls after which a save begins. forget: after which one is committed.
  """
  pool = Unrepeatable(first)
  journal = JournaledPool(pool, path, writer=sole_writer())
  if restore is not None:
    journal.restore(restore)
  outcomes = {}
  for call in calls:
    outcomes[call] = journal.reward(examples(2), texts(call))
    if call in marks:
      assert journal.mark() == call + 1
    if call == forget:
      journal.forget(journal.mark())
  journal.close()
  return outcomes, pool.calls


def test_a_killed_run_sees_the_same_outcomes_again(tmp_path):
  """E0 with timeouts among them; later calls are judged for the first time."""
  path = tmp_path / 'run' / 'journal'
  first, _ = run(path, range(5))
  again, judged = run(path, range(7), first=1000)
  assert {n: again[n] for n in range(5)} == first
  assert judged == 2 and again[6][0].components['outcome'] >= 100
  third, judged = run(path, range(7), first=2000)
  assert third == again and judged == 0
  assert first[0][1].error == 'timeout: killed 1'


def test_a_run_continues_after_its_checkpoint(tmp_path):
  """Saved after call 2, killed after call 4: calls 3 and 4 are repeated."""
  path = tmp_path / 'journal'
  first, _ = run(path, range(5), marks=(2,))
  again, judged = run(path, range(3, 6), first=1000, restore=3)
  assert {n: again[n] for n in (3, 4)} == {n: first[n] for n in (3, 4)}
  assert judged == 1


def test_saves_that_fail_advance_nothing(tmp_path):
  """E0: however many calls were started and not committed, all calls are
  repeated.
  """
  path = tmp_path / 'journal'
  first, _ = run(path, range(9), marks=range(9))
  assert run(path, range(9), first=1000, marks=range(9)) == (first, 0)


def test_a_partial_line_is_ignored(tmp_path):
  """E0: cut at every byte of the last line, and appended to afterwards."""
  path = tmp_path / 'journal'
  first, _ = run(path, range(3))
  whole = path.read_bytes()
  start = whole[:-1].rindex(b'\n') + 1
  for end in range(start, len(whole)):
    path.write_bytes(whole[:end])
    again, judged = run(path, range(4), first=1000)
    assert (again[0], again[1]) == (first[0], first[1]) and judged == 2
    assert run(path, range(4), first=2000) == (again, 0)


def test_what_a_committed_checkpoint_has_seen_is_dropped(tmp_path):
  path = tmp_path / 'journal'
  run(path, range(10), forget=3)
  assert path.read_bytes().count(b'\n') == 6  # calls 4 to 9


def test_lines_of_other_responses_are_not_used(tmp_path):
  path = tmp_path / 'journal'
  run(path, [0, 1])
  pool = Unrepeatable(first=50)
  journal = JournaledPool(pool, path, writer=sole_writer())
  (outcome,) = journal.reward(examples(1), ['another'])
  assert outcome.components == {'outcome': 5.0}
  journal.close()


def test_lines_of_another_task_are_not_used(tmp_path):
  """A reward function that was corrected is called; the same one is not."""
  path, found = tmp_path / 'journal', []
  for first, task in enumerate(['old', 'old', 'new']):
    journal = JournaledPool(
      Unrepeatable(first=10 * first), path, task, sole_writer()
    )
    (outcome,) = journal.reward(examples(1), ['same'])
    found.append(outcome.components['outcome'])
    journal.close()
  assert found == [0.0, 0.0, 2.0]


def test_without_a_path_nothing_is_written(tmp_path):
  _, judged = run(None, range(3), marks=(1,))
  assert judged == 3 and not any(tmp_path.iterdir())


def test_a_full_disk_does_not_stop_the_run(tmp_path, caplog):
  """The directory is a file, so that every write fails; E0 of the outcomes."""
  caplog.set_level(logging.WARNING)
  (tmp_path / 'file').write_text('')
  journal = JournaledPool(
    Unrepeatable(), tmp_path / 'file', writer=sole_writer()
  )
  journal._path = tmp_path / 'file' / 'journal'
  for call in range(2):
    (outcome,) = journal.reward(examples(1), [str(call)])
    assert outcome.components == {'outcome': pytest.approx(0.1 * call)}
  journal.close()
  assert caplog.text.count('cannot be written') == 1  # of two calls


def old_form(path):
  """Takes the checksums of lines away, as of earlier versions."""
  lines = path.read_bytes().splitlines()
  old = [line.rpartition(b', "line_crc": ')[0] + b'}\n' for line in lines]
  path.write_bytes(b''.join(old))


def test_lines_of_earlier_versions_are_read(tmp_path):
  """E0: and those that follow them have a checksum."""
  path = tmp_path / 'journal'
  first, _ = run(path, range(3))
  old_form(path)
  again, judged = run(path, range(4), first=1000)
  assert {n: again[n] for n in range(3)} == first and judged == 1
  assert path.read_bytes().count(b'"line_crc"') == 4


def test_every_flipped_bit_of_a_line_is_noticed(tmp_path, caplog):
  """E0: of rewards, kinds, keys and checksums; the call is made again."""
  path = tmp_path / 'journal'
  first, _ = run(path, range(2))
  whole = path.read_bytes()
  start = whole.index(b'\n') + 1
  for place in range(start, len(whole) - 1):
    for bit in range(8):
      damaged = bytearray(whole)
      damaged[place] ^= 1 << bit
      path.write_bytes(damaged)
      journal = JournaledPool(Unrepeatable(), path, writer=sole_writer())
      assert list(journal._lines) == [0], (place, bit)
  assert 'journal:2 is damaged (its checksum differs)' in caplog.text
  again, judged = run(path, range(2), first=50)
  assert again[0] == first[0] and judged == 1


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
def test_a_line_of_another_form_ends_the_file(tmp_path, caplog, line):
  """E0: as a torn one does, with a warning that names it."""
  path = tmp_path / 'journal'
  first, _ = run(path, range(3))
  lines = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(lines[0] + line.encode() + b'\n' + lines[2])
  again, judged = run(path, range(3), first=1000)
  assert again[0] == first[0] and judged == 2
  assert 'journal:2 is damaged' in caplog.text


@pytest.mark.parametrize(
  'outcomes',
  [
    [],
    [[{'outcome': '1'}, 'ok', ''], [None, 'error', '']],
    [[{'outcome': None}, 'ok', ''], [None, 'error', '']],
  ],
)
def test_outcomes_that_do_not_fit_the_call_are_not_used(tmp_path, outcomes):
  """A file that another program wrote, with the right checksums."""
  path = tmp_path / 'journal'
  run(path, [0])
  line = journal_lib._decode(path.read_bytes()[:-1])
  path.write_bytes(journal_lines.encode({**line, 'outcomes': outcomes}))
  again, judged = run(path, [0], first=7)
  assert judged == 1 and again[0][0].components == {
    'outcome': 0.7000000000000001
  }
