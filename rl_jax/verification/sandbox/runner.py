"""The program that `run_calls` starts: a keeper and the child it confines.

Started as `python -P -s -S -B runner.py DIRECTORY FD` with one line of JSON on
stdin. The keeper forks a child, which confines itself, runs the code and
writes lines of JSON to FD. The keeper waits for the first of: the child ends;
the wall limit; stdin closes (the caller has died or has stopped it). Then it
kills and reaps every descendant and reports on stdout how the child ended.
"""

import importlib.util
import json
import math  # noqa: F401  imported before files become unreadable
import os
import resource
import select
import signal
import sys
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel  # noqa: E402

del sys.path[0]

_VALUES = 3  # the only open descriptor of the child
_LIBRARIES = ('/usr/lib', '/lib', '/lib64', '/usr/share/zoneinfo')
_FILES = ('/etc/ld.so.cache', '/dev/urandom')
_ERROR_CHARS = 300


def main() -> None:
  """The keeper."""
  directory, values = sys.argv[1], int(sys.argv[2])
  request = json.loads(sys.stdin.buffer.readline())
  missing = {}
  library = os.path.dirname(os.__file__)
  kernel.adopt_orphans()
  if os.geteuid() == 0:
    os.chown(directory, kernel.NOBODY, kernel.NOBODY)
    if not _try(missing, 'user', kernel.leave_root, os.__file__):
      os.chown(directory, 0, 0)
  if 'namespaces' in request['layers']:
    _try(missing, 'namespaces', kernel.enter_namespaces)
  kernel.hide()
  deadline = time.monotonic() + request['wall_seconds']
  child = os.fork()
  if child == 0:
    try:
      _confine(request, directory, values, library, missing)
      _serve(request, missing)
    finally:
      os._exit(1)
  os.close(values)
  ended = _watch(child, deadline)
  status = _end(child)
  if ended == 'stopped':  # the caller may not exist any more
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
  if ended == 'exit' and os.WIFSIGNALED(status):
    ended = signal.Signals(os.WTERMSIG(status)).name
  sys.stdout.write(json.dumps({'ended': ended}) + '\n')


def _try(missing, name, function, *arguments):
  """Calls it, or records why it failed."""
  try:
    function(*arguments)
  except OSError as error:
    missing[name] = str(error)
  return name not in missing


def _watch(child, deadline):
  poll = select.poll()
  pidfd = os.pidfd_open(child)
  poll.register(pidfd, select.POLLIN)
  poll.register(0, select.POLLIN)
  left = max(0.0, deadline - time.monotonic())
  ready = [fd for fd, _ in poll.poll(1000 * left)]
  return 'exit' if pidfd in ready else 'stopped' if ready else 'timeout'


def _end(child):
  """Kills and reaps the child and all its descendants."""
  os.kill(child, signal.SIGKILL)  # it is not reaped yet, so this is its pid
  _, status = os.waitpid(child, 0)
  # With a pid namespace the kernel has killed the rest by now. Without one,
  # orphans are children of this process, whatever their session.
  while True:
    try:
      pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
      return status
    if pid == 0:
      for orphan in _children():
        os.kill(orphan, signal.SIGKILL)
      time.sleep(0.001)


def _children():
  found = []
  for name in os.listdir('/proc'):
    if name.isdigit():
      try:
        with open(f'/proc/{name}/stat') as file:
          parent = file.read().rpartition(')')[2].split()[1]
      except OSError:
        continue
      if int(parent) == os.getpid():
        found.append(int(name))
  return found


def _confine(request, directory, values, library, missing):
  """Confines the child before any untrusted code runs; the order matters."""
  layers = request['layers']
  os.setsid()
  kernel.die_with_parent()
  if 'namespaces' in layers and 'namespaces' not in missing:
    size = request['disk_bytes']
    hidden = request['hidden']
    _try(missing, 'mounts', kernel.mount_private_files, directory, size, hidden)
  os.chdir(directory)
  null = os.open(os.devnull, os.O_RDWR)
  os.dup2(values, 1000)
  for standard in (0, 1, 2):  # what the code prints is discarded
    os.dup2(null, standard)
  os.dup2(1000, _VALUES)
  os.closerange(_VALUES + 1, 1 << 16)
  if 'landlock' in layers:
    readable = [library, *_LIBRARIES, *_FILES, f'{sys.base_prefix}/lib']
    for folders in request['packages'].values():
      readable += folders
    writable = [directory, os.devnull]
    version = request['landlock_version']
    _try(
      missing, 'landlock', kernel.restrict_files, readable, writable, version
    )
  for name, value in (
    ('AS', request['memory_bytes']),
    ('CPU', request['cpu_seconds']),
    ('FSIZE', request['disk_bytes']),
    ('NOFILE', request['open_files']),
    ('NPROC', 0),
    ('CORE', 0),
    ('MEMLOCK', 0),
    ('MSGQUEUE', 0),
  ):
    kind = getattr(resource, f'RLIMIT_{name}')
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
  _try(missing, 'privileges', kernel.drop_privileges)
  if 'seccomp' in layers:
    _try(missing, 'seccomp', kernel.refuse_calls)


class _Packages:
  """Finds packages by name, whose folder beside others cannot be listed."""

  def __init__(self, folders):
    self._folders = {name: found[0] for name, found in folders.items()}

  def find_spec(self, name, path=None, target=None):
    """The spec of a package; submodules are found in its folder."""
    del path, target
    folder = self._folders.get(name)
    if folder is None:
      return None
    return importlib.util.spec_from_file_location(
      name,
      os.path.join(folder, '__init__.py'),
      submodule_search_locations=[folder],
    )


def _serve(request, missing):
  """Runs the code, then one call after the other; one line for each."""
  _write({'missing': missing})
  if request['packages']:
    sys.meta_path.append(_Packages(request['packages']))
  # A module that can be found: dataclasses look up types in that of a class.
  module = sys.modules['response'] = types.ModuleType('response')
  space = module.__dict__
  try:
    exec(compile(request['code'], 'response.py', 'exec'), space)
    function = space[request['function']]
  except BaseException as error:
    _write({'error': _text(error)})
    return
  for arguments in request['calls']:
    try:
      line = {'value': function(*arguments)}
    except BaseException as error:
      line = {'error': _text(error)}
    try:
      _write(line)
    except (TypeError, ValueError, RecursionError) as error:
      _write({'error': f'the value is not JSON: {_text(error)}'})


def _text(error):
  try:
    return f'{type(error).__name__}: {error}'[:_ERROR_CHARS]
  except BaseException:  # __str__ is untrusted code, too
    return type(error).__name__[:_ERROR_CHARS]


def _write(line):
  text = json.dumps(line).encode() + b'\n'
  while text:
    text = text[os.write(_VALUES, text) :]


if __name__ == '__main__':
  main()
