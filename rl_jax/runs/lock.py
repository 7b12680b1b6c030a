"""One trainer at a time in a work directory: an advisory lock.

`lock.json` names the host, the process and a token of the run that writes
there; the process holds it with flock, which the kernel frees when the process
ends, however it ends. So the lock of a dead process of this host is taken over,
also if another process has its number now. Who only reads takes no lock.

The process that takes over need not ask whether the other one has ended: one
that was only paused writes nothing more, wherever it was paused, by the rules
of `runtime.writer`. For them, the new lock.json is in place first, then what
the other process was writing is removed and files of lines are replaced by
copies, and only then anything is read.

Limits. Not all shared file systems carry flock to other hosts (NFS with
local_lock, Lustre with localflock), so the lock of another host counts as long
as its file is there: after a crash on another host a run needs `take_over`.
Where clients cache directories (NFS: seconds), two hosts that start at the same
moment may both succeed, and a host may see for that long that it still has the
lock. A file system without flock gives a warning: there a lock of this host
counts while a process has its number. What was renamed by a process that was
paused and then killed before it could check again keeps the other name
(`Writer.move`).
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import stat
import time

from absl import logging

from rl_jax.runs.guards import StopRunError
from rl_jax.runs.saving import CHECKPOINTS, WEIGHTS
from rl_jax.runtime import processes
from rl_jax.runtime.writer import Writer, make_token

FILE = 'lock.json'
SHARED_SECONDS = 20.0  # in which every host must see the lock of the first one
_UNSUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
_MOST_BYTES = 1 << 12
_PAUSES = (0.0, 0.1, 0.4)  # seconds: another process may be renaming the file


class HeldError(ValueError):
  """Another run writes in the work directory."""


class Lock:
  """The right to write in a work directory, until `release`.

  take_over: do not ask whether another run holds it; that run ends with an
    error at its next `check`.
  writer: names and checks for everything that writes there.

  Raises:
    HeldError: another run holds it.
    ValueError: the directory cannot be written, lock.json is a link, or another
      process of this run does not see the same directory.
  """

  def __init__(self, workdir: str, take_over: bool = False):
    self._workdir, self._path = workdir, os.path.join(workdir, FILE)
    self._file = None  # of process 0
    self._made = False  # the directory
    self._held = False
    token, written = processes.on_main(lambda: self._acquire(take_over))
    self.writer = Writer(token, self.check)
    self._held = True
    try:
      if written:
        self._check_shared()
      processes.on_main(lambda: self._fence(take_over))
    except BaseException:
      self.release()
      raise

  def check(self) -> None:
    """Raises StopRunError if another run has taken the directory over."""
    if self._held and (why := self._why_lost()):
      raise StopRunError(f'{why}: this run writes nothing more')

  def release(self) -> None:
    """Lets others write; idempotent."""
    held, self._held = self._held, False
    if self._file is None:
      return
    if held and not self._why_lost():
      with contextlib.suppress(OSError):
        self._remove()
        if self._made:  # and nothing was written since
          os.rmdir(self._workdir)
    self._file.close()
    self._file = None

  def _remove(self):
    """Unlinks the file, which is that of this run."""
    assert self._file is not None
    aside = self.writer.temporary(self._path)
    os.rename(self._path, aside)
    if not os.path.samestat(os.fstat(self._file.fileno()), os.stat(aside)):
      os.link(aside, self._path)  # taken over in between: it is given back
    os.unlink(aside)

  def _acquire(self, take_over):
    """(token, whether lock.json has it); on process 0."""
    self._made = not os.path.exists(self._workdir)
    token = make_token()
    try:
      os.makedirs(self._workdir, exist_ok=True)
      if take_over:
        if os.path.lexists(self._path):
          logging.warning('taking over from %s', _name(_read(self._path)))
        return token, self._install(token)
      claimed = self._claim()
      try:
        return token, self._install(token)
      finally:
        claimed.close()
    except OSError as error:
      raise ValueError(f'{self._workdir} cannot be written: {error}') from error

  def _claim(self):
    """The file at the path, which no other run holds and this one holds now."""
    while True:
      file = _open(self._path, os.O_RDWR | os.O_CREAT)
      try:
        self._hold(file)
        with contextlib.suppress(FileNotFoundError):  # its holder has ended
          if os.path.samestat(os.fstat(file.fileno()), os.stat(self._path)):
            return file
      except BaseException:
        file.close()
        raise
      file.close()

  def _hold(self, file):
    """Refuses the lock of another run."""
    holder, refused = _read(self._path), False
    ours = holder.get('host') in (None, socket.gethostname())
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      refused = True
    except OSError as error:
      if error.errno not in _UNSUPPORTED:
        raise
      logging.warning(
        '%s: this file system has no flock (%s); two trainers that start at '
        'the same moment would not see each other',
        self._path,
        error,
      )
      refused = ours and _alive(holder.get('pid'))
    if refused or not ours:
      raise HeldError(
        f'{self._path}: {_name(holder)} writes in this work directory. Use '
        'another --workdir, or end that run. If it has ended already, or '
        'should end now, add --take_over.'
      )

  def _install(self, token):
    """Puts a new file at the path, held from the start; whether it is written.

    Never writes into the file that is there, which may be a link to another.
    """
    temporary = Writer(token, self.check).temporary(self._path)
    self._file = _open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    with contextlib.suppress(OSError):  # a warning has said so
      fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder = {'host': socket.gethostname(), 'pid': os.getpid(), 'token': token}
    written = True
    try:
      self._file.write(json.dumps(holder).encode() + b'\n')
    except OSError as error:  # a full disk; flock holds also there
      logging.warning('%s cannot be written: %s', self._path, error)
      written = False
    os.replace(temporary, self._path)
    return written

  def _fence(self, take_over):
    """Keeps a process that was taken over from the files, on process 0."""
    for folder in ('', CHECKPOINTS, WEIGHTS):
      self.writer.clear(os.path.join(self._workdir, folder))
    if not take_over:
      return
    for name in os.listdir(self._workdir):
      path = os.path.realpath(os.path.join(self._workdir, name))
      if name.endswith('.jsonl') and os.path.isfile(path):
        temporary = self.writer.temporary(path)
        try:
          shutil.copy2(path, temporary)
          os.replace(temporary, path)
        except OSError as error:
          logging.warning('%s is not copied: %s', path, error)
          with contextlib.suppress(OSError):
            os.unlink(temporary)

  def _check_shared(self):
    """Raises ValueError if a process does not see the lock of process 0."""
    if processes.count() == 1:
      return
    mine = [socket.gethostname(), os.path.abspath(self._workdir)]
    found = processes.gather([*mine, self._appears()])
    main = ':'.join(found[0][:2])
    for number, (host, path, seen) in enumerate(found):
      if not seen:
        raise ValueError(
          f'process {number} does not see the work directory of process 0, '
          f'{main}, at {host}:{path}: --workdir must be one directory that all '
          'hosts share'
        )

  def _appears(self):
    """Returns whether the lock of process 0 can be read here, at the latest
    soon.
    """
    deadline = time.monotonic() + SHARED_SECONDS
    while _read(self._path).get('token') != self.writer.token:
      if time.monotonic() > deadline:
        return False
      time.sleep(0.1)
    return True

  def _why_lost(self) -> str:
    """Returns what has become of the lock; '' while this run has it."""
    for pause in _PAUSES:
      time.sleep(pause)
      try:
        # Opened, not looked up: then NFS asks the server.
        with _open(self._path, os.O_RDONLY) as file:
          holder = _holder(file)
          if holder.get('token') == self.writer.token:
            return ''
          same = 'token' not in holder and (
            self._file is None
            or os.path.samestat(
              os.fstat(self._file.fileno()), os.fstat(file.fileno())
            )
          )
      except FileNotFoundError:
        continue
      except ValueError as error:  # another kind of file
        return str(error)
      except OSError as error:
        if error.errno != errno.ESTALE:
          return ''  # it cannot be read now: nobody is known to have taken it
        continue
      name = _name(holder)
      return '' if same else f'{name} has taken over {self._path}'
    # The other processes of a run may see an old state of the directory.
    if self._file is None:
      return ''
    return (
      f'{self._path} is not there any more (another run has taken over and '
      'ended, or the directory was removed)'
    )


def _open(path, flags):
  """A regular file, without buffers; ValueError for links and others."""
  try:
    number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
  except OSError as error:
    if error.errno != errno.ELOOP:
      raise
    raise ValueError(f'{path} is a link: remove it') from error
  file = open(number, 'rb' if flags == os.O_RDONLY else 'r+b', buffering=0)
  if not stat.S_ISREG(os.fstat(number).st_mode):
    file.close()
    raise ValueError(f'{path} is not a regular file: remove it')
  return file


def _holder(file):
  """Host, process and token in a lock; {} if they cannot be known."""
  try:
    holder = json.loads(file.read(_MOST_BYTES))
  except (OSError, ValueError, RecursionError):
    return {}
  return holder if isinstance(holder, dict) else {}


def _read(path):
  try:
    with _open(path, os.O_RDONLY) as file:
      return _holder(file)
  except (OSError, ValueError):
    return {}


def _name(holder):
  if not holder:
    return 'another process'
  return f'process {holder.get("pid")} on {holder.get("host")}'


def _alive(pid):
  if not isinstance(pid, int) or pid <= 0:
    return False
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  except (PermissionError, OverflowError):
    return True
  return True
