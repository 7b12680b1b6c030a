"""Tries to escape from `rl_jax.verification.sandbox`, and prints a table.

  python tests/tools/attacks.py                 all attacks, all layers
  python tests/tools/attacks.py --columns=all,containers,limits

Attacks are aimed only at what this program has made: files below a temporary
directory, a sleeping process, listeners on loopback. An attack is blocked if
it returned neither True nor a secret, changed nothing outside, did not reach
a listener, ended near its time limit, and left no process and no file.
Columns switch layers off to show what is left where the platform lacks them:
`containers` has no namespaces (as Docker by default), `namespaces` nothing
else, `limits` nothing but rlimits and the keeper. Exit status 1 if anything is
not blocked in the first column.
"""

from collections.abc import Sequence
import ctypes
import dataclasses
import importlib.util
import json
import os
import pathlib
import resource
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from rl_jax.verification import sandbox

_PATH = pathlib.Path(__file__).with_name('attack_programs.py')
_SPEC = importlib.util.spec_from_file_location('attack_programs', _PATH)
programs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(programs)

COLUMNS = {
  'all': sandbox.LAYERS,
  'containers': ('landlock', 'seccomp'),
  'namespaces': ('namespaces',),
  'limits': (),
}
WALL_SECONDS = 1.0
# Of interpreter start, killing and a busy machine; a hang would be far longer.
SLACK_SECONDS = 8.0


class World:
  """The canaries: files, a process and listeners that attacks aim at."""

  def __init__(self):
    self.token = 'canary-' + secrets.token_hex(16)
    self.base = tempfile.mkdtemp(prefix='rl_jax_attacks_')
    os.chmod(
      self.base, 0o755
    )  # readable by all users: only the sandbox forbids it
    self.scratch = os.path.join(self.base, 'scratch')
    os.mkdir(self.scratch, 0o755)
    self._before = os.environ.get('TMPDIR'), tempfile.tempdir
    tempfile.tempdir = self.scratch
    os.environ['RL_JAX_CANARY'] = self.token
    self._text = ctypes.create_string_buffer(self.token.encode())
    self.secret = os.path.join(self.base, 'secret')
    self.tests = os.path.join(self.base, 'tests.jsonl')
    self._write_files()
    self.fd = os.open(self.tests, os.O_RDONLY)
    os.set_inheritable(self.fd, True)
    self._listen()
    self.victim = None
    self._start_victim()

  def __enter__(self) -> 'World':
    return self

  def __exit__(self, *_) -> None:
    self.victim.kill()
    self.victim.wait()
    for one in self.listeners.values():
      one.close()
    os.close(self.fd)
    del os.environ['RL_JAX_CANARY']
    tempfile.tempdir = self._before[1]
    shutil.rmtree(self.base)

  def _write_files(self):
    for path in (self.secret, self.tests):
      with open(path, 'w') as file:
        file.write(self.token)
      os.chmod(path, 0o644)
    self._seen = self._files()

  def _listen(self):
    self.unix = os.path.join(self.base, 'unix')
    self.abstract = 'rl_jax_' + secrets.token_hex(8)
    self.listeners = {
      'TCP': socket.socket(),
      'UDP': socket.socket(type=socket.SOCK_DGRAM),
      'UNIX': socket.socket(socket.AF_UNIX),
      'abstract': socket.socket(socket.AF_UNIX),
    }
    addresses = (
      ('127.0.0.1', 0),
      ('127.0.0.1', 0),
      self.unix,
      '\0' + self.abstract,
    )
    for (name, one), where in zip(
      self.listeners.items(), addresses, strict=True
    ):
      one.bind(where)
      if name != 'UDP':
        one.listen()
    os.chmod(self.unix, 0o777)
    self._seen = self._files()

  def _start_victim(self):
    self.victim = subprocess.Popen(
      [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(3600)'],
      start_new_session=True,
    )

  def _files(self):
    found = {}
    for name in os.listdir(self.base):
      if name != 'scratch':
        path = os.path.join(self.base, name)
        stat = os.lstat(path)
        found[name] = (stat.st_mode, stat.st_size, stat.st_mtime)
    return found

  def constants(self) -> dict:
    """Constants of the attack programs."""

    def port(name):
      return self.listeners[name].getsockname()[1]

    return {
      'base': self.base,
      'secret': self.secret,
      'tests': self.tests,
      'parent': os.getpid(),
      'address': ctypes.addressof(self._text),
      'length': len(self.token),
      'fd': self.fd,
      'victim': self.victim.pid,
      'tcp': port('TCP'),
      'udp': port('UDP'),
      'unix': self.unix,
      'abstract': self.abstract,
    }

  def damage(self) -> list[str]:
    """Damage to the canaries, which are repaired."""
    found = []
    if self._files() != self._seen:
      found.append('files outside changed')
      self._repair_files()
    with open(self.secret) as file:
      if file.read() != self.token:
        found.append('the secret changed')
    state = _state(self.victim.pid)
    limit = resource.prlimit(self.victim.pid, resource.RLIMIT_NOFILE)
    if self.victim.poll() is not None or state in 'Tt' or limit[0] == 7:
      found.append(f'the victim is in state {state}, limits {limit}')
      self.victim.kill()
      self.victim.wait()
      self._start_victim()
    for one in select.select(self.listeners.values(), [], [], 0)[0]:
      found.append('a listener was reached')
      if one is self.listeners['UDP']:
        one.recv(100)
      else:
        one.accept()[0].close()
    return found

  def _repair_files(self):
    for name in os.listdir(self.base):
      path = os.path.join(self.base, name)
      if name in ('scratch', 'unix', 'tests.jsonl'):
        continue
      if os.path.isdir(path):
        shutil.rmtree(path)
      else:
        os.unlink(path)
    self._write_files()

  def left_behind(self) -> list[str]:
    """Processes and directories of sandboxes; kills and removes them."""
    found = []
    for name in os.listdir('/proc'):
      if not name.isdigit():
        continue
      try:
        with open(f'/proc/{name}/cmdline') as file:
          ours = self.scratch in file.read()
        if ours and _state(int(name)) not in ('Z', 'X', '?'):
          found.append(f'process {name}')
          os.kill(int(name), signal.SIGKILL)
      except (OSError, ValueError):
        continue
    for name in os.listdir(self.scratch):
      found.append(f'directory {name}')
      subprocess.run(['rm', '-rf', os.path.join(self.scratch, name)])
    return found


def _state(pid):
  try:
    with open(f'/proc/{pid}/stat') as file:
      return file.read().rpartition(')')[2].split()[0]
  except OSError:
    return '?'


@dataclasses.dataclass(frozen=True)
class Finding:
  """The success of one attack; nothing if it was blocked."""

  name: str
  achieved: list[str]
  detail: str
  seconds: float


def attack(
  world: World, name: str, layers: Sequence[str], landlock_version: int = 99
) -> Finding:
  """Runs one program below the given layers."""
  code = f'C = {world.constants()!r}\n{programs.ALL[name]}'
  limits = sandbox.Limits(
    wall_seconds=WALL_SECONDS,
    cpu_seconds=3,
    layers=tuple(layers),
    landlock_version=landlock_version,
  )
  start, achieved, detail = time.monotonic(), [], ''
  try:
    report = sandbox.run_calls(code, 'f', [[1]], limits)
    (result,) = report.results
    detail = f'{report.ended}; {result.error or repr(result.value)}'
    if result.value is True or world.token in json.dumps(result.value):
      achieved.append('it succeeded')
  except sandbox.SandboxError as error:
    achieved.append(f'the sandbox failed: {error}')
  seconds = time.monotonic() - start
  if seconds > WALL_SECONDS + SLACK_SECONDS:
    achieved.append('it exceeded its time')
  achieved += world.damage() + world.left_behind()
  return Finding(name, achieved, detail, seconds)


def main(argv: Sequence[str]) -> None:
  """Prints the table; exit status 1 if the first column is not all blocked."""
  names = list(COLUMNS)
  for argument in argv[1:]:
    names = argument.removeprefix('--columns=').split(',')
  unknown = set(names) - set(COLUMNS)
  if unknown:
    sys.exit(f'{sorted(unknown)} are none of the columns {list(COLUMNS)}')
  missing = sandbox.run_calls('', '', []).missing
  print(f'missing on this machine: {missing or "nothing"}\n')
  print('| attack |', ' | '.join(names), '| what happened in the first |')
  print('|---|' + '---|' * len(names) + '---|')
  blocked = dict.fromkeys(names, 0)
  with World() as world:
    for name in programs.ALL:
      findings = [attack(world, name, COLUMNS[column]) for column in names]
      cells = []
      for column, finding in zip(names, findings, strict=True):
        blocked[column] += not finding.achieved
        cells.append('NOT blocked' if finding.achieved else 'blocked')
      first = findings[0]
      said = '; '.join(first.achieved) or first.detail
      said = said.replace(world.base, '...').replace('|', '/')[:70]
      print(f'| {name} |', ' | '.join(cells), f'| {said} |', flush=True)
  total = len(programs.ALL)
  print()
  for column in names:
    print(f'{column}: {blocked[column]} of {total} attacks blocked')
  if blocked[names[0]] < total:
    sys.exit(1)


if __name__ == '__main__':
  main(sys.argv)
