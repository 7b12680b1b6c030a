"""Answers of calls are written before they are used, and read once."""

import pytest

from rl_jax.runtime.writer import Writer, sole_writer
from rl_jax.verification import journal as journal_lib
from rl_jax.verification import journal_lines
from rl_jax.verification.journal import AnswerJournal, KeptAnswer, Key

_OPENED = []  # journals of a test


@pytest.fixture(autouse=True)
def _closed():
  yield
  while _OPENED:
    _OPENED.pop().close()


def _journal(folder, task='', **more):
  _OPENED.append(AnswerJournal(folder, task, sole_writer(), **more))
  return _OPENED[-1]


def _key(serial, turn=1, crc=5):
  return Key(serial, 0, turn, 'step', crc)


def _said(text='said'):
  return KeptAnswer('ok', {'observation': text})


def test_lines_of_another_task_are_not_known(tmp_path):
  """Nor those of another turn, or other inputs."""
  _journal(tmp_path, 'task').add(_key(0), _said())
  _OPENED.pop().close()
  assert _journal(tmp_path, 'task').known(_key(0)) == _said()
  assert _journal(tmp_path, 'other').known(_key(0)) is None
  for key in (_key(1), _key(0, turn=2), _key(0, crc=6)):
    assert _journal(tmp_path, 'task').known(key) is None


def test_the_first_line_of_a_key_counts(tmp_path):
  for text in ('one', 'two'):
    journal = _journal(tmp_path)
    journal._lines.clear()  # as of a process that did not read it
    journal.add(_key(0), _said(text))
    journal.close()
  assert _journal(tmp_path).known(_key(0)) == _said('one')


def test_a_call_that_was_answered_twice_is_void(tmp_path):
  """By a later line of the same call, which no other outcome can be."""
  journal = _journal(tmp_path)
  journal.add(_key(0), _said('forged'))
  journal.add(_key(0), KeptAnswer(journal_lib.VOID, None, 'twice'))
  journal.close()
  for known in (journal, _journal(tmp_path)):
    assert known.known(_key(0)).outcome == journal_lib.VOID


def test_a_torn_last_line_is_ignored(tmp_path):
  """E0: cut at every byte of it, and written to afterwards."""
  journal = _journal(tmp_path)
  for serial in range(3):
    journal.add(_key(serial), _said(str(serial)))
  journal.close()
  (path,) = tmp_path.iterdir()
  whole = path.read_bytes()
  start = whole[:-1].rindex(b'\n') + 1
  for end in range(start, len(whole)):
    path.write_bytes(whole[:end])
    again = _journal(tmp_path)
    known = [again.known(_key(serial)) for serial in range(3)]
    assert [line is not None for line in known] == [True, True, False]
    again.add(_key(2), _said('new'))
    again.close()
    last = _journal(tmp_path).known(_key(2))
    assert last == _said('new')


def test_a_damaged_line_costs_its_own_call(tmp_path, caplog):
  """Every flipped bit is noticed."""
  journal = _journal(tmp_path)
  for serial in range(3):
    journal.add(_key(serial), _said())
  journal.close()
  (path,) = tmp_path.iterdir()
  whole = path.read_bytes()
  start = whole.index(b'\n') + 1
  end = whole.index(b'\n', start)
  for place in range(start, end):
    for bit in range(8):
      damaged = bytearray(whole)
      damaged[place] ^= 1 << bit
      path.write_bytes(damaged)
      found = _journal(tmp_path)._lines
      assert {key[0] for key in found} == {0, 2}, (place, bit)
  assert 'damaged: these calls are made again' in caplog.text


@pytest.mark.parametrize(
  'line',
  [
    {},
    {'of': [0, 0]},
    *(
      {**dict.fromkeys(journal_lib._KEYS, 1), 'of': of, 'reply': {}}
      for of in (None, [0], [0, 'x'], 'ab')
    ),
  ],
)
def test_lines_of_another_form_are_not_used(tmp_path, line):
  (tmp_path / 'process_0_00000000.jsonl').write_bytes(
    journal_lines.encode(line) + b'\x00\n' + b'[' * 100_000 + b'\n'
  )
  assert not _journal(tmp_path)._lines


def test_files_that_a_checkpoint_has_passed_are_deleted(tmp_path):
  """A file has SERIALS of them; those of other processes stay."""
  count = journal_lib.SERIALS
  other = _journal(tmp_path, process=1)
  other.add(_key(0), _said())
  journal = _journal(tmp_path)
  for serial in range(3 * count):
    journal.add(_key(serial), _said())
  assert len(list(tmp_path.iterdir())) == 4
  journal.forget(2 * count - 1)
  assert len(list(tmp_path.iterdir())) == 3
  journal.forget(3 * count)
  assert [path.name[:9] for path in tmp_path.iterdir()] == ['process_1']
  journal.add(_key(3 * count), _said())  # it continues
  assert _journal(tmp_path).known(_key(3 * count))


def test_a_full_disk_does_not_stop_the_run(tmp_path, caplog):
  """The folder is a file, so that every write fails."""
  (tmp_path / 'file').write_text('')
  journal = _journal(tmp_path / 'folder')
  journal._folder = journal._folder.parent / 'file' / 'answers'
  for serial in range(2):
    journal.add(_key(serial), _said())
  assert caplog.text.count('cannot be written') == 1


def test_a_paused_process_writes_to_no_file_of_its_successor(tmp_path):
  """It has opened the former file, or its check fails."""
  allowed = [True]  # of the old process

  def check():
    if not allowed[0]:
      raise PermissionError('taken over')

  old = AnswerJournal(tmp_path, '', Writer('old', check))
  _OPENED.append(old)
  old.add(_key(0), _said('old'))
  new = _journal(tmp_path)
  new.add(_key(1), _said('new'))
  old.add(_key(2), _said('after its last check'))
  allowed[0] = False
  old.add(_key(3), _said('refused'))
  found = _journal(tmp_path)._lines
  assert sorted(key[0] for key in found) == [0, 1]
