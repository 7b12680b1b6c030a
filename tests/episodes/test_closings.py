"""The file of closings: what is known again after a kill, and of which rule."""

import dataclasses
import os

import pytest

from rl_jax.episodes.closings import FILE, ClosingJournal
from rl_jax.episodes.schedule import Close, Rule
from rl_jax.runtime.writer import Writer, sole_writer

RULE = Rule(groups=2, staleness=1, order='arrival')
CLOSES = (
  Close(0, (1, 3), 2, (0, 1, 3)),
  Close(1, (2, 4), 2, (2, 4)),
  Close(2, (5, 6), 1, (5, 6)),
)
KNOWN = {0: ((1, 3), (0,)), 1: ((2, 4), ()), 2: ((5, 6), ())}


@pytest.fixture(name='written')
def _written(tmp_path):
  """A folder with three closings."""
  journal = ClosingJournal(tmp_path / 'answers', sole_writer())
  for close in CLOSES:
    journal.add(close, RULE)
  journal.close()
  return tmp_path / 'answers'


def test_closings_are_known_again(written):
  journal = ClosingJournal(written, sole_writer())
  assert journal.known(RULE, 0) == KNOWN
  assert journal.known(RULE, 2) == {2: KNOWN[2]}
  for changes in ({'groups': 3}, {'staleness': 2}, {'max_rounds': 2}):
    other = dataclasses.replace(RULE, **changes)
    assert not journal.known(other, 0)


def test_a_closing_is_on_the_disk_before_its_update(tmp_path, monkeypatch):
  """The file is flushed and synced when `add` returns."""
  synced = []
  sync = os.fsync
  monkeypatch.setattr(os, 'fsync', lambda n: synced.append(sync(n)))
  journal = ClosingJournal(tmp_path, sole_writer())
  for number, close in enumerate(CLOSES, 1):
    before = len(synced)
    journal.add(close, RULE)
    assert len(synced) > before
    other = ClosingJournal(tmp_path, sole_writer())
    assert len(other.known(RULE, 0)) == number
  journal.close()


def test_a_torn_line_is_written_again(written):
  """The last line is cut where a kill may cut it, at each of its bytes."""
  whole = (written / FILE).read_bytes()
  start = whole[:-1].rfind(b'\n') + 1
  for end in range(start, len(whole)):
    (written / FILE).write_bytes(whole[:end])
    journal = ClosingJournal(written, sole_writer())
    assert journal.known(RULE, 0) == {0: KNOWN[0], 1: KNOWN[1]}
    journal.add(CLOSES[2], RULE)
    journal.close()
    assert (written / FILE).read_bytes() == whole


@pytest.mark.parametrize('line', [b'{"closing": 1}', b'not JSON', b'\xff', b''])
def test_what_follows_a_damaged_line_is_not_used(written, line):
  """Closings after one that is made again are of another run."""
  lines = (written / FILE).read_bytes().splitlines(keepends=True)
  lines[1] = line + b'\n'
  (written / FILE).write_bytes(b''.join(lines))
  journal = ClosingJournal(written, sole_writer())
  assert journal.known(RULE, 0) == {0: KNOWN[0]}
  other = Close(1, (2, 5), 2, (2, 5))
  journal.add(other, RULE)
  journal.close()
  known = ClosingJournal(written, sole_writer()).known(RULE, 0)
  assert known == {0: KNOWN[0], 1: ((2, 5), ())}


def test_nothing_is_kept_without_a_folder():
  journal = ClosingJournal()
  journal.add(CLOSES[0], RULE)
  assert journal.known(RULE, 0) == {} and journal.path is None
  journal.close()


def test_a_disk_that_is_full_is_a_warning(tmp_path, caplog):
  (tmp_path / 'answers').write_text('a file in place of the folder')
  journal = ClosingJournal(tmp_path / 'answers', sole_writer())
  journal.add(CLOSES[0], RULE)
  journal.add(CLOSES[1], RULE)
  journal.close()
  assert caplog.text.count('cannot be written') == 1


def test_who_has_lost_the_directory_writes_nothing(written):
  """Its file may still be open; the error of the lock passes through."""
  before = (written / FILE).read_bytes()

  def lost():
    raise RuntimeError('taken over')

  journal = ClosingJournal(written, Writer('0' * 16, lost))
  with pytest.raises(RuntimeError, match='taken over'):
    journal.add(Close(3, (7, 8), 2, (7, 8)), RULE)
  journal.close()
  assert (written / FILE).read_bytes() == before
