"""One trainer in a work directory; a dead one does not block it."""

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from configs.worlds import bandit
from rl_jax.overrides import override
from rl_jax.runs import lock, loop
from rl_jax.runs.guards import StopRunError

HOLD = """
import sys
from rl_jax.runs import lock
held = lock.Lock(sys.argv[1])
print('held', flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
  """Another process that holds the lock of tmp_path."""
  process = subprocess.Popen(
    [sys.executable, '-c', HOLD, str(tmp_path)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  assert process.stdout.readline() == 'held\n'
  yield process
  process.kill()
  process.communicate()


def test_a_second_trainer_is_refused(tmp_path, holder):
  """Host and process are named; the first keeps its lock."""
  for _ in range(2):
    with pytest.raises(ValueError, match='--take_over') as error:
      lock.Lock(str(tmp_path))
    assert f'process {holder.pid} on {socket.gethostname()}' in str(error.value)


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_dead_process_is_taken(tmp_path, holder, number):
  holder.send_signal(number)
  holder.wait()
  assert (tmp_path / lock.FILE).exists()
  held = lock.Lock(str(tmp_path))
  assert json.loads((tmp_path / lock.FILE).read_text())['pid'] == os.getpid()
  held.release()
  held.release()
  assert not list(tmp_path.iterdir())


def test_a_run_whose_directory_was_taken_over_ends(tmp_path):
  """Its release leaves the lock of the other in place."""
  first = lock.Lock(str(tmp_path))
  first.check()
  second = lock.Lock(str(tmp_path), take_over=True)
  with pytest.raises(StopRunError, match=f'process {os.getpid()} .* taken'):
    first.check()
  first.release()
  second.check()
  with pytest.raises(ValueError, match='writes in this work directory'):
    lock.Lock(str(tmp_path))
  second.release()


def test_the_lock_of_another_host_needs_the_flag(tmp_path):
  """Its process cannot be seen from here."""
  text = json.dumps({'host': 'elsewhere', 'pid': 7})
  (tmp_path / lock.FILE).write_text(text)
  with pytest.raises(ValueError, match='process 7 on elsewhere'):
    lock.Lock(str(tmp_path))
  assert (tmp_path / lock.FILE).read_text() == text
  lock.Lock(str(tmp_path), take_over=True).release()


@pytest.mark.parametrize(
  'text', ['', '{"ho', '[1]', '\x00\x00', '{"pid": "x"}']
)
def test_an_odd_lock_file_that_nobody_holds_is_replaced(tmp_path, text):
  (tmp_path / lock.FILE).write_text(text)
  lock.Lock(str(tmp_path)).release()


def test_without_flock_the_process_number_decides(
  tmp_path, monkeypatch, caplog
):
  """And a warning says what is not seen."""

  def unsupported(*unused):
    raise OSError(errno.ENOLCK, 'No locks available')

  monkeypatch.setattr(fcntl, 'flock', unsupported)
  first = lock.Lock(str(tmp_path))
  assert 'no flock' in caplog.text
  with pytest.raises(ValueError, match='writes in this work directory'):
    lock.Lock(str(tmp_path))
  first.release()
  dead = subprocess.Popen([sys.executable, '-c', ''])
  dead.wait()
  for pid in (dead.pid, -1, 10**30, None):
    holder = {'host': socket.gethostname(), 'pid': pid}
    (tmp_path / lock.FILE).write_text(json.dumps(holder))
    if pid == 10**30:
      with pytest.raises(ValueError, match='writes in this work'):
        lock.Lock(str(tmp_path))
    else:
      lock.Lock(str(tmp_path)).release()


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
  (tmp_path / 'file').write_text('')
  for path in ('file', 'file/below', 'x' * 300):
    with pytest.raises(ValueError, match='cannot be written'):
      lock.Lock(str(tmp_path / path))


def test_a_trainer_locks_until_its_run_ends(tmp_path, toy):
  """Refused while it lives; taken over, it writes nothing more."""
  config = bandit.get_config(toy.get_method('reinforce'))
  for path, text in (('iterations', '2'), ('evaluation.every', '0')):
    config = override(config, path, text)
  workdir = str(tmp_path / 'run')
  first = loop.Trainer(config, workdir)
  with pytest.raises(ValueError, match='writes in this work directory'):
    loop.Trainer(config, workdir)
  second = loop.Trainer(config, workdir, take_over=True)
  with pytest.raises(RuntimeError, match='taken over'):
    first.run()
  second.run()
  assert not (tmp_path / 'run' / lock.FILE).exists()
  loop.Trainer(config, workdir).close()


def test_links_are_not_written_through(tmp_path):
  """A symbolic link is refused, or replaced if that is asked for."""
  precious = tmp_path / 'precious.txt'
  precious.write_text('data')
  (tmp_path / 'run').mkdir()
  path = tmp_path / 'run' / lock.FILE
  path.symlink_to(precious)
  with pytest.raises(ValueError, match=r'lock\.json is a link: remove it'):
    lock.Lock(str(tmp_path / 'run'))
  assert path.is_symlink()
  lock.Lock(str(tmp_path / 'run'), take_over=True).release()
  assert not path.exists() and precious.read_text() == 'data'
  os.link(precious, path)
  lock.Lock(str(tmp_path / 'run')).release()
  assert not path.exists() and precious.read_text() == 'data'


@pytest.mark.parametrize('kind', ['fifo', 'folder', 'device'])
def test_what_is_no_file_is_named(tmp_path, kind):
  """Nothing waits for a pipe, and a device is not written to."""
  path = tmp_path / lock.FILE
  if kind == 'fifo':
    os.mkfifo(path)
  elif kind == 'folder':
    path.mkdir()
  else:
    path.symlink_to('/dev/full')
  with pytest.raises(ValueError, match=r'lock\.json'):
    lock.Lock(str(tmp_path))


def test_a_directory_that_was_removed_ends_the_run(tmp_path):
  """And one that was emptied: nobody would find what is written there."""
  held = lock.Lock(str(tmp_path / 'run'))
  (tmp_path / 'run' / lock.FILE).unlink()
  with pytest.raises(StopRunError, match='not there any more'):
    held.check()
  (tmp_path / 'run').rmdir()
  with pytest.raises(StopRunError, match='not there any more'):
    held.check()
  held.release()


def test_a_full_disk_is_no_obstacle(tmp_path, monkeypatch, caplog):
  """The lock holds although nobody can read who has it."""
  real = lock._open

  class Full:
    """A file on a full disk."""

    def __init__(self, file):
      self._file = file

    def write(self, data):
      raise OSError(errno.ENOSPC, 'No space left on device')

    def __getattr__(self, name):
      return getattr(self._file, name)

  def full(path, flags):
    file = real(path, flags)
    return Full(file) if flags & os.O_EXCL else file

  monkeypatch.setattr(lock, '_open', full)
  held = lock.Lock(str(tmp_path))
  assert 'cannot be written' in caplog.text
  held.check()
  with pytest.raises(lock.HeldError, match='another process writes'):
    lock.Lock(str(tmp_path))
  second = lock.Lock(str(tmp_path), take_over=True)
  with pytest.raises(StopRunError, match='another process has taken over'):
    held.check()
  held.release()
  second.release()
  assert not list(tmp_path.iterdir())


def test_what_killed_processes_have_left_is_removed(tmp_path):
  """Leftovers of saves, files and deletions go; names that are similar stay."""
  left = 'tmp-0123456789abcdef'
  names = [
    f'checkpoints/step_00000003.{left}/arrays/x',
    f'checkpoints/step_00000001.deleted.{left}/COMMITTED',
    f'weights/step_00000003.{left}/x',
    f'experiment.json.{left}',
    'notes.tmp-mine',
    'checkpoints/step_00000002/COMMITTED',
  ]
  for name in names:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('')
  (tmp_path / f'link.{left}').symlink_to(tmp_path / 'checkpoints')
  held = lock.Lock(str(tmp_path))
  found = sorted(
    str(p.relative_to(tmp_path)) for p in tmp_path.rglob('*') if p.is_file()
  )
  assert found == [
    'checkpoints/step_00000002/COMMITTED',
    'lock.json',
    'notes.tmp-mine',
  ]
  held.release()


def test_lines_of_a_run_that_was_taken_over_have_no_file(tmp_path):
  """Linked files stay links; the copies have what was there."""
  held = lock.Lock(str(tmp_path / 'run'))
  (tmp_path / 'metrics').write_text('1\n')
  path = tmp_path / 'run' / 'metrics.jsonl'
  path.symlink_to(tmp_path / 'metrics')
  with path.open('a') as file:
    second = lock.Lock(str(tmp_path / 'run'), take_over=True)
    file.write('2\n')
  assert path.read_text() == '1\n' and path.is_symlink()
  held.release()
  second.release()
