"""Starts, forks, kills and closes the verifier processes of a trainer."""

import json
import logging
from multiprocessing import connection as connection_lib
import os
import pickle
import socket
import struct
import subprocess
import sys
from typing import Any
import weakref

from rl_jax import user_modules
from rl_jax.verification import worker as worker_lib

MOST = 256  # workers, where nobody has said
# For a task's imports: large packages take minutes on a machine that is busy.
START_SECONDS = 600.0
_LOGGER = logging.getLogger(__name__)
_START = (
  'import json, sys; sys.path[:] = json.loads(sys.argv[1]); '
  'from rl_jax.verification import worker as w; w.nursery(int(sys.argv[2]))'
)


def cores() -> int:
  """Processors that this process may use."""
  if sys.platform == 'linux':
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


class Worker:
  """The trainer's connection to one worker process."""

  def __init__(self, pid, connection):
    self.pid, self.connection = pid, connection
    self.pending: dict[int, Any] = {}  # calls sent and not answered, by number
    self.given: dict[int, Any] = {}  # with those answered since it was idle
    self.kind = ''  # of them
    self.since = 0.0  # when the first of them began
    self.closing = None  # call_queue.Closing, while it does so
    self.episodes: set[Any] = set()  # that live here
    self.ends: list[Any] = []  # episodes that it closes before its next call


class Crew:
  """The nursery and its workers; sessions: of episodes, not of rewards.

  num_workers: None begins with one and may have MOST.
  """

  def __init__(
    self,
    task,
    num_workers,
    memory_limit_bytes,
    start_seconds,
    sessions=False,
  ):
    try:
      pickled = pickle.dumps(task)
    except Exception as error:
      raise RuntimeError(
        f'{type(task).__name__} cannot be sent to worker processes '
        f'({error}): define its class at the top level of a module'
      ) from error
    main = sys.modules.get('__main__')
    self._settings = pickle.dumps(
      {
        'task': pickled,
        'main_path': getattr(main, '__file__', None),
        'user_files': user_modules.files(),
        'memory_limit_bytes': memory_limit_bytes,
        'sessions': sessions,
      }
    )
    self.grows, self._start_seconds = num_workers is None, start_seconds
    self.num_workers = MOST if num_workers is None else num_workers
    self.workers = []
    self._next_number = 0
    self._finalizer = None
    self.restart()

  def pids(self):
    """Process ids of the live workers."""
    return [worker.pid for worker in self.workers]

  def restart(self):
    """Ends all processes and starts new ones; RuntimeError if that fails."""
    self.close()
    ours, theirs = socket.socketpair()
    paths = [os.path.abspath(path) for path in sys.path]
    environment = {
      **os.environ,
      'JAX_PLATFORMS': 'cpu',  # an import of JAX must not use the accelerator
      'CUDA_VISIBLE_DEVICES': '',
      'OMP_NUM_THREADS': '1',
      'OPENBLAS_NUM_THREADS': '1',
    }
    with theirs:
      process = subprocess.Popen(
        [sys.executable, '-c', _START, json.dumps(paths), str(theirs.fileno())],
        stdin=subprocess.PIPE,
        pass_fds=[theirs.fileno()],
        env=environment,
        start_new_session=True,  # Ctrl-C reaches only the trainer
      )
    self._process, self._control = process, ours
    self._finalizer = weakref.finalize(
      self, _shut_down, process, ours, self.workers
    )
    try:
      ours.settimeout(self._start_seconds)
      assert process.stdin is not None
      with process.stdin as stdin:
        stdin.write(self._settings)
      with ours.makefile() as lines:
        message = json.loads(lines.readline() or '"it ended without a message"')
    except TimeoutError:
      self.close()
      raise RuntimeError(
        f'a verifier process has not loaded the task in {self._start_seconds} '
        'seconds: its module, what that imports, and its method `prepare`'
      ) from None
    except (OSError, ValueError) as error:
      message = f'it did not start: {error!r}'
    if message != 'ready':
      self.close()
      raise RuntimeError(
        f'a verifier process cannot load the task:\n{message}\n'
        'Define its class in a module that can be imported; only if its reward '
        'always ends, verifier.num_workers=0 computes rewards in this process'
      )
    count = 1 if self.grows else self.num_workers
    self.workers.extend(self._fork() for _ in range(count))

  def replace(self, worker):
    """Kills and reaps a worker and puts a new one in its place.

    Raises: OSError if the nursery has ended.
    """
    worker.connection.close()
    self._ask(b'k', worker.pid)
    self.workers[self.workers.index(worker)] = self._fork()

  def can_grow(self):
    """Returns whether there may be one worker more."""
    return len(self.workers) < self.num_workers

  def add(self):
    """One worker more, or None if the system has no room for it.

    Raises: ConnectionError if the nursery has ended.
    """
    try:
      worker = self._fork()
    except ConnectionError:
      raise
    except OSError as error:
      self.num_workers = len(self.workers)
      _LOGGER.warning(
        'there are only %d verifier processes: %s', self.num_workers, error
      )
      return None
    self.workers.append(worker)
    return worker

  def numbers(self, count):
    """The first of `count` numbers of requests that were never used before."""
    first = self._next_number
    self._next_number += count
    return first

  def close(self):
    """Ends all processes."""
    if self._finalizer is not None:
      self._finalizer()

  def _fork(self):
    ours, theirs = socket.socketpair()
    try:
      with theirs:
        pid = self._ask(b'f', 0, [theirs.fileno()])
    except OSError:
      ours.close()
      raise
    # A worker that stops in the middle of a message must not block the pool.
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
      limit = struct.pack('ll', 10, 0)
      ours.setsockopt(socket.SOL_SOCKET, option, limit)
    return Worker(pid, connection_lib.Connection(ours.detach()))

  def _ask(self, letter, pid, fds=()):
    command = worker_lib.COMMAND.pack(letter, pid)
    if fds:
      socket.send_fds(self._control, [command], fds)
    else:
      self._control.sendall(command)
    reply = self._control.recv(worker_lib.REPLY.size, socket.MSG_WAITALL)
    if len(reply) < worker_lib.REPLY.size:
      raise ConnectionError('the verifier nursery has ended')
    (found,) = worker_lib.REPLY.unpack(reply)
    if not found:
      raise BlockingIOError('the system starts no further process')
    return found


def _shut_down(process, control, workers):
  """Closing the control socket makes the nursery kill its workers and end."""
  control.close()
  for worker in workers:
    worker.connection.close()
  workers.clear()
  try:
    process.wait(timeout=5)
  except subprocess.TimeoutExpired:
    process.kill()
    process.wait()
