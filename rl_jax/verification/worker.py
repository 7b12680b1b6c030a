"""The processes of the pools: one nursery that forks their workers.

The nursery is started once as a new interpreter. It unpickles the task, calls
its `prepare` and then only forks, so that a killed worker is replaced in
milliseconds and no process with threads of JAX is forked. This module must not
import JAX.
"""

import asyncio
import contextlib
import ctypes
import functools
import json
from multiprocessing.connection import Connection
import os
import pickle
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import traceback
import types
from typing import Any

from rl_jax import user_modules
from rl_jax.verification import (
  child_processes,
  concurrent_host,
  messages,
  numbers,
  session_host,
)
from rl_jax.verification.sandbox.breach import BreachError

# Commands to the nursery: letter (f: fork, k: kill), process id.
COMMAND = struct.Struct('=cI')
REPLY = struct.Struct('=I')
BREACH = session_host.BREACH
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def judge(task: Any, example: Any, response: str) -> tuple[str, Any, str]:
  """('ok', components, ''), or ('error' | 'invalid', None, what happened).

  (BREACH, None, why) if the task can no longer judge: see `check_breach`.
  A process that the call has forked does not return from here: it ends.
  """
  return session_host.in_this_process(
    functools.partial(_judge, task, example, response)
  )


def _judge(task, example, response):
  try:
    components = task.reward(example, response)
  except (KeyboardInterrupt, GeneratorExit):
    raise
  except BreachError as error:
    return BREACH, None, str(error)
  except BaseException as error:  # SystemExit, too, affects only its sample
    return 'error', None, messages.of_error(error)
  try:
    return 'ok', check_components(components), ''
  except Exception as error:
    return 'invalid', None, messages.named(error)


def check_breach(kind: str, detail: str) -> None:
  """Raises BreachError for the reply of a process that cannot judge."""
  if kind == BREACH:
    raise BreachError(detail)


def check_components(components: Any) -> dict[str, float]:
  """Finite Python floats by name, `outcome` among them, or ValueError."""
  checked = numbers.check_numbers(components, 'reward')
  if 'outcome' not in checked:
    raise ValueError(f"no component 'outcome' among {sorted(checked)}")
  return checked


def nursery(control_fd: int) -> None:
  """Entry point: reads its settings from stdin, then forks when asked."""
  for name in (signal.SIGINT, signal.SIGTERM):
    signal.signal(name, signal.SIG_IGN)  # the trainer decides when to end
  parent = os.getppid()
  control = socket.socket(fileno=control_fd)
  settings = pickle.load(sys.stdin.buffer)
  try:
    task = _load_task(settings)
  except BaseException:
    control.sendall(json.dumps(traceback.format_exc()).encode() + b'\n')
    return
  control.sendall(b'"ready"\n')
  children = set()
  if sys.platform == 'linux':
    # Processes of a killed worker, also in other sessions, become children.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
  try:
    _serve(control, parent, children, task, settings)
  finally:
    for pid in children:
      _end(pid)
    _end_orphans(set())


def _load_task(settings):
  user_modules.register(settings['user_files'])
  try:
    task = pickle.loads(settings['task'])
  except AttributeError:
    # The task's class is defined in a script: import it under another name,
    # as multiprocessing does, so that its __main__ block does not run.
    if settings['main_path'] is None:
      raise
    module = types.ModuleType('__mp_main__')
    module.__dict__.update(
      runpy.run_path(settings['main_path'], run_name='__mp_main__')
    )
    sys.modules['__main__'] = sys.modules['__mp_main__'] = module
    task = pickle.loads(settings['task'])
  task.prepare()
  return task


def _serve(control, parent, children, task, settings):
  while True:
    readable, _, _ = select.select([control], [], [], 1.0)
    if os.getppid() != parent:
      return
    if not readable:
      continue
    message, fds, _, _ = socket.recv_fds(control, COMMAND.size, 1)
    if len(message) < COMMAND.size:
      return
    letter, pid = COMMAND.unpack(message)
    if letter == b'f':
      pid = _fork()
      if pid == 0:
        control.close()
        _work(task, fds[0], settings)
      os.close(fds[0])
      if pid is None:
        pid = 0  # there can be none
      else:
        children.add(pid)
    elif pid in children:
      _end(pid)
      children.discard(pid)
      _end_orphans(children | child_processes.kept)
    control.sendall(REPLY.pack(pid))


def _fork():
  """os.fork(), None if the system starts no further process."""
  try:
    return os.fork()
  except OSError:
    return None


def _end(pid):
  """Kills a worker with its descendants and reaps it."""
  for kill, target in ((os.killpg, pid), (os.kill, pid)):
    try:
      kill(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
      pass
  with contextlib.suppress(ChildProcessError):  # another thread has done it
    os.waitpid(pid, 0)


def _end_orphans(others):
  """Kills the processes that calls have left, but for `others`."""
  if sys.platform != 'linux':
    return
  while orphans := child_processes.children() - others:
    for pid in orphans:
      _end(pid)


def _has_children():
  """Returns whether a call has left a process, running or not reaped."""
  try:
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
  except ChildProcessError:
    return False
  return True


def _work(task, fd, settings):
  """Reads chunks of numbered requests, writes a line of JSON for each.

  Processes that a call has left are killed before its reply is sent; those of
  an episode live as long as it does, and `child_processes.kept` as this one.
  """
  code = 1
  try:
    nursery_pid = os.getppid()
    os.setsid()  # its own process group, to be killed as a whole
    if sys.platform == 'linux':
      libc = ctypes.CDLL(None, use_errno=True)
      libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
      libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # to see what a call leaves
    if os.getppid() != nursery_pid:
      return
    if (most := settings['memory_limit_bytes']) is not None:
      resource.setrlimit(resource.RLIMIT_AS, (most, most))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # what the task prints is discarded
      os.dup2(null, standard)
    connection = Connection(fd)

    def send(*reply):
      return connection.send_bytes(json.dumps(reply).encode())

    if settings['sessions'] and task.traits.workers != 'process':
      host = concurrent_host.ConcurrentHost(task)
      loop = asyncio.new_event_loop()  # what runs at the end is not waited for
      loop.run_until_complete(concurrent_host.serve(connection, host))
      return
    host = session_host.Host(task) if settings['sessions'] else None
    while True:
      for number, *request in pickle.loads(connection.recv_bytes()):
        if host is None:
          reply = judge(task, *request)
        else:
          tell = functools.partial(send, number)
          reply = host.answer(*request, tell=tell)
        if not (host and host.live) and _has_children():
          _end_orphans(child_processes.kept)
        send(number, *reply)
  except (EOFError, OSError):
    code = 0  # the trainer has closed the connection
  finally:
    os._exit(code)
