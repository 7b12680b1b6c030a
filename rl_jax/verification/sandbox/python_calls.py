"""Calls of a function in untrusted Python code, in one confined process.

The process gets code and arguments and returns values as JSON; the caller
compares them with what is expected, which the process never has. So whatever
the code patches, prints, writes to the pipe or exits with, only right values
count. (The code does see the arguments of all its tests.)

A new interpreter (`-P -s -S -B`) with nothing in its environment but the seed
of hashes, so that sets of texts have one order, its own directory and no
file descriptor but the pipe runs within the limits of `Limits`, in layers, each
of which is used if the kernel and the container permit it:

  limits      rlimits on memory, CPU, size of a file, open files, processes;
              output to /dev/null, values up to output_bytes; SIGKILL at the
              wall limit to every descendant, whatever its session. Always on.
  user        root becomes the user nobody, if that one can read the standard
              library.
  namespaces  own users, pids, IPC and network without an interface; files
              read-only, /proc hidden, the directory a small memory disk.
  landlock    only the standard library, and packages that are named, can be
              read, only the directory written.
  seccomp     no sockets, processes, threads, signals, tracing, mounts, ...

What is missing, and why, is in `Report.missing`. What cannot be blocked:
  - load: every sample may use its CPU seconds and its memory;
  - its own directory where mounts are missing: many small files may fill the
    disk until the wall limit (they are deleted after);
  - without landlock, what the user may read can be read, but for files that
    the caller names as hidden; without mounts, those too;
  - without seccomp, UNIX sockets with a path can be reached, and, where root
    has not become nobody, processes be started (all are killed at the end);
  - without namespaces and seccomp, the network, and signals to processes of
    the same user: run nothing untrusted there (without Linux nothing is run);
  - bugs of the kernel and of CPUs. For hostile code use a virtual machine.
"""

from collections.abc import Sequence
import dataclasses
import importlib.util
import json
import logging
import math
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

LAYERS = ('namespaces', 'landlock', 'seccomp')
_RUNNER = pathlib.Path(__file__).with_name('runner.py')
_FLAGS = ('-P', '-s', '-S', '-B')  # -I would not read the seed of hashes
_ENVIRONMENT = {
  'PYTHONHASHSEED': '0',
  # A thread cannot be started.
  **dict.fromkeys(('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS'), '1'),
}
_GRACE_SECONDS = 10.0  # beyond the wall limit, for start and end


class SandboxError(RuntimeError):
  """The sandbox itself failed, not the code in it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
  """Limits of a process, for all calls of one `run_calls` together.

  packages: names of installed ones that the code can import beside the standard
    library, with those that they need: ('sympy', 'mpmath'), ('numpy',). They
    run within the same limits, without threads; numpy needs memory_bytes of
    1 << 30.

  Raises: ValueError naming the field for values out of range.
  """

  wall_seconds: float = 5.0
  cpu_seconds: int = 4
  memory_bytes: int = 256 << 20  # address space; the interpreter takes 30 MB
  disk_bytes: int = 1 << 20  # a file; with mounts, all files together
  open_files: int = 16
  output_bytes: int = 1 << 16  # of the values as JSON
  layers: tuple[str, ...] = LAYERS  # fewer are for tests of the others
  landlock_version: int = 99  # at most; less is for tests of older kernels
  packages: tuple[str, ...] = ()

  def __post_init__(self):
    for name, value in (
      ('wall_seconds', self.wall_seconds),
      ('cpu_seconds', self.cpu_seconds),
      ('memory_bytes', self.memory_bytes),
      ('disk_bytes', self.disk_bytes),
    ):
      if not 0 < value < math.inf:
        raise ValueError(f'Limits.{name} = {value} is not in (0, inf)')
    for name, value, low in (
      ('open_files', self.open_files, 8),
      ('output_bytes', self.output_bytes, 1024),
    ):
      if value < low:
        raise ValueError(f'Limits.{name} = {value} is below {low}')
    for name in self.packages:
      if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
          f'Limits.packages = {self.packages}: {name!r} is not the name of a '
          'package'
        )
    unknown = sorted(set(self.layers) - set(LAYERS))
    if unknown:
      raise ValueError(f'Limits.layers has {unknown}; known: {LAYERS}')


@dataclasses.dataclass(frozen=True)
class Result:
  """The result of one call: a JSON value, or an error."""

  value: Any = None
  error: str | None = None


@dataclasses.dataclass(frozen=True)
class Report:
  """One Result per call, how the process ended, and which layers were missing.

  ended: 'exit', 'timeout', 'output' (too long) or the name of a signal.
  """

  results: tuple[Result, ...]
  ended: str
  missing: dict[str, str]


def run_calls(
  code: str,
  function: str,
  calls: Sequence[Sequence[Any]],
  limits: Limits | None = None,
  hidden: Sequence[str] = (),
) -> Report:
  """Runs the code, then `function(*arguments)` for each of the calls.

  hidden: files that the code may not read, such as hidden tests, which mounts
  make empty (landlock lets it read none at all; without both it can).
  Arguments are JSON values; tuples in returned values come back as lists.

  Raises:
    SandboxError: no process could be started, its keeper failed, or this is
      not Linux.
  """
  if sys.platform != 'linux':
    raise SandboxError(f'untrusted Python is run on Linux, not {sys.platform}')
  limits = limits or Limits()
  request = {
    'code': code,
    'function': function,
    'calls': [list(arguments) for arguments in calls],
    'hidden': [os.path.realpath(p) for p in hidden if os.path.isfile(p)],
    **dataclasses.asdict(limits),
    'packages': _folders(limits.packages),
  }
  directory = os.path.realpath(tempfile.mkdtemp(prefix='rl_jax_sandbox_'))
  try:
    output, ended = _run(json.dumps(request), directory, limits)
  finally:
    _remove(directory)
  lines = output.split(b'\n')
  try:
    missing = json.loads(lines[0])['missing']
  except (ValueError, LookupError, TypeError):
    raise SandboxError(
      f'the sandbox did not start ({ended}): {output[:200]!r}'
    ) from None
  # What follows the last newline is incomplete.
  results = [_result(line) for line in lines[1:-1][: len(calls)]]
  reason = results[-1].error if results and results[-1].error else ended
  absent = Result(error=f'no value: {reason}')
  results += [absent] * (len(calls) - len(results))
  return Report(tuple(results), ended, missing)


def _folders(packages: Sequence[str]) -> dict[str, list[str]]:
  """Name of a package -> its folder, and that of its shared libraries.

  Raises: SandboxError naming one that is not installed.
  """
  found = {}
  for name in packages:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
      raise SandboxError(f'the package {name!r} is not installed')
    folder = os.path.realpath(spec.submodule_search_locations[0])
    libraries = f'{folder}.libs'
    found[name] = [folder] + [libraries] * os.path.isdir(libraries)
  return found


def check_packages(name: str, limits: Limits) -> None:
  """Raises RuntimeError if code cannot import a package that it may.

  name: of what has the limits.
  """
  for package in limits.packages:
    code = f'def run():\n  import {package}'
    (result,) = run_calls(code, 'run', [[]], limits).results
    if result.error is not None:
      raise RuntimeError(
        f'{name}.packages has {package!r}, which cannot be imported there: '
        f'{result.error}. Packages that it needs are to be named, too, and its '
        'files readable by everyone; numpy needs memory_bytes of 1 << 30'
      )


def _run(request, directory, limits):
  """(bytes that the child wrote, how it ended)."""
  ours, theirs = os.pipe()
  try:
    process = subprocess.Popen(
      [sys.executable, *_FLAGS, _RUNNER, directory, str(theirs)],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      pass_fds=[theirs],
      env=_ENVIRONMENT,
      cwd=directory,
      start_new_session=True,  # survives the caller, to clean up
    )
  except OSError as error:
    os.close(ours)
    raise SandboxError(f'the sandbox cannot be started: {error}') from error
  finally:
    os.close(theirs)
  assert process.stdin is not None and process.stdout is not None
  with process:
    try:
      deadline = time.monotonic() + limits.wall_seconds + _GRACE_SECONDS
      process.stdin.write(request.encode() + b'\n')
      process.stdin.flush()
      output = _read(ours, limits.output_bytes, deadline)
      if len(output) > limits.output_bytes:
        process.stdin.close()  # makes the keeper end it
      status = _read(process.stdout.fileno(), 1 << 12, deadline)
      ended = json.loads(status)['ended']
    except (OSError, ValueError, LookupError) as error:
      raise SandboxError(f'the keeper failed: {error!r}') from error
    finally:
      os.close(ours)
      _end(process)
  if len(output) > limits.output_bytes:
    ended = 'output'
  return output, ended


def _end(process):
  """Waits for the keeper, which has sent its status, or kills it."""
  try:
    process.wait(timeout=1.0)
  except subprocess.TimeoutExpired:
    process.kill()


def _read(fd, num_bytes, deadline):
  """All bytes until the end, or num_bytes + 1."""
  output = b''
  while len(output) <= num_bytes:
    wait = max(0.0, deadline - time.monotonic())
    if not select.select([fd], [], [], wait)[0]:
      raise OSError('no end of its output')
    chunk = os.read(fd, num_bytes + 1 - len(output))
    if not chunk:
      break
    output += chunk
  return output


def _result(line):
  try:
    found = json.loads(line)
  except (ValueError, RecursionError) as error:
    return Result(error=f'not JSON: {type(error).__name__}')
  if not isinstance(found, dict) or set(found) not in ({'value'}, {'error'}):
    return Result(error='neither value nor error')
  if 'error' in found:
    return Result(error=str(found['error']))
  return Result(value=found['value'])


def _remove(directory):
  """Deletes it, also with entries that the code has made unwritable."""
  try:
    shutil.rmtree(directory)
  except (OSError, RecursionError):
    subprocess.run(['chmod', '-R', 'u+rwx', directory], capture_output=True)
    subprocess.run(['rm', '-rf', directory], capture_output=True)


# Code can neither read what it is judged by, nor write outside.
SAFE = ('seccomp', 'landlock|namespaces')
_LOGGER = logging.getLogger(__name__)


def check_required(
  name: str, report: Report, layers: Sequence[str], require: Sequence[str]
) -> None:
  """Raises RuntimeError if one of the required layers is missing.

  Args:
    name: of the class that has the field `require`.
    report: of a run that tried the layers.
    layers: that were tried.
    require: names of layers, 'a|b' for one of them.
  """
  missing = report.missing
  works = {layer for layer in layers if layer not in missing}
  if 'mounts' in missing:
    works.discard('namespaces')  # files are as readable as without
  lacking = [one for one in require if not works & set(one.split('|'))]
  if lacking:
    raise RuntimeError(
      f'{name}.require names {lacking}, which this machine lacks ({missing}; '
      f'layers in use: {sorted(works)}): generated code could read the hidden '
      'tests or answers, or write outside. task.require=() allows it'
    )
  if missing:
    _LOGGER.warning('sandbox without %s', missing)
