"""One trainer at a time in a work directory: an advisory lock.

`lock.json` names the host and process that write there; the process holds it
with flock, which the kernel frees when the process ends, however it ends. So
the lock of a dead process of this host is taken over, also if another process
has its number now. Who only reads takes no lock.

Limits. Not all shared file systems carry flock to other hosts (NFS with
local_lock, Lustre with localflock), so the lock of another host counts as long
as its file is there: after a crash on another host a run needs `take_over`.
Where clients cache directories (NFS: seconds), two hosts that start at the same
moment may both succeed. A file system without flock gives a warning: there a
lock of this host counts while a process has its number.
"""

import contextlib
import errno
import fcntl
import json
import os
import socket
from typing import TextIO

from absl import logging

from rl_jax.runs.guards import StopRunError
from rl_jax.runtime import processes

FILE = 'lock.json'
_UNSUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


class HeldError(ValueError):
  """Another run writes in the work directory."""


class Lock:
  """The right to write in a work directory, until `release`.

  take_over: do not ask whether another run holds it; that run ends with an
    error at its next `check`.

  Raises:
    HeldError: another run holds it.
    ValueError: the directory cannot be written.
  """

  def __init__(self, workdir: str, take_over: bool = False):
    self._path = os.path.join(workdir, FILE)
    self._file: TextIO | None = None
    self._made = not os.path.exists(workdir)
    processes.on_main(lambda: self._acquire(workdir, take_over))

  def check(self) -> None:
    """Raises StopRunError if another run has taken the directory over."""
    if self._file is not None and not self._is_current():
      raise StopRunError(
        f'{_name(_read(self._path))} has taken over {self._path}: this run '
        'writes nothing more'
      )

  def release(self) -> None:
    """Lets others write; idempotent."""
    if self._file is None:
      return
    if self._is_current():
      with contextlib.suppress(OSError):
        os.unlink(self._path)
        if self._made:  # and nothing was written since
          os.rmdir(os.path.dirname(self._path))
    self._file.close()
    self._file = None

  def _acquire(self, workdir, take_over):
    try:
      os.makedirs(workdir, exist_ok=True)
      if take_over and os.path.exists(self._path):
        logging.warning('taking over from %s', _name(_read(self._path)))
        os.unlink(self._path)
      while True:
        self._file = file = open(self._path, 'a+')  # noqa: SIM115
        self._hold(file)
        if self._is_current():  # its holder may have removed it in between
          break
      self._write(file)
    except OSError as error:
      raise ValueError(f'{workdir} cannot be written: {error}') from error

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
        *(self._path, error),
      )
      refused = ours and _alive(holder.get('pid'))
    if refused or not ours:
      file.close()
      raise HeldError(
        f'{self._path}: {_name(holder)} writes in this work directory. Use '
        'another --workdir, or end that run. If it has ended already, or '
        'should end now, add --take_over.'
      )

  def _write(self, file):
    """Names this process; flock holds also where the disk is full."""
    holder = {'host': socket.gethostname(), 'pid': os.getpid()}
    try:
      file.truncate(0)
      file.write(json.dumps(holder) + '\n')
      file.flush()
    except OSError as error:
      logging.warning('%s cannot be written: %s', self._path, error)

  def _is_current(self):
    """Whether the file that this process holds is the one at the path."""
    if self._file is None:
      return False
    try:
      return os.path.samestat(
        os.fstat(self._file.fileno()), os.stat(self._path)
      )
    except FileNotFoundError:
      return False


def _read(path):
  """Host and process of a lock; {} if they cannot be known."""
  try:
    with open(path) as file:
      holder = json.load(file)
  except (OSError, ValueError):
    return {}
  return holder if isinstance(holder, dict) else {}


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
