"""Kills a run with SIGKILL again and again, then compares it with a whole one.

  python tests/tools/kill_resume.py --seconds=120 --interval=1

runs the command once undisturbed and once killed about every `interval`
seconds (uniform on 0 to twice that, from `seed`) until `seconds` have passed,
then to its end. Tier E0: the arrays of the newest checkpoint, its host state,
metrics.jsonl and rollouts.jsonl must be equal; only `time/*`, the times of
episodes in slots, and byte offsets may differ. The interval starts when the
process begins its first save: one that still compiles has nothing to lose and
would make no progress.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import hashlib
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from absl import app, flags

from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.checkpoints.files import quiet_orbax
from rl_jax.records.metrics import METRICS, ROLLOUTS, read_jsonl

COMMAND = (
  '{python} -m experiments.train --config=configs/worlds/bandit.py '
  '--method=grpo '
  '--set=iterations=200 --set=checkpoint.every=1 --workdir={workdir}'
)
CODE = ('rl_jax', 'experiments', 'configs')
TIMED = re.compile(
  r'time/|device/|cache/|episodes/|rollout/waited_for|'
  r'calls/.+/(queued|ran|count)'
)
IGNORED = ('offsets', 'seconds')  # keys of the host state
ROOT = pathlib.Path(__file__).resolve().parents[2]


def start(command: str, workdir: pathlib.Path) -> subprocess.Popen:
  """Starts the command in its own process group, output to a file."""
  words = shlex.split(command.format(python=sys.executable, workdir=workdir))
  workdir.mkdir(parents=True, exist_ok=True)
  with open(workdir / 'output.txt', 'ab') as output:
    return subprocess.Popen(
      words,
      cwd=ROOT,
      stdout=output,
      stderr=subprocess.STDOUT,
      start_new_session=True,
      env={'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT), **os.environ},
    )


def finish(process: subprocess.Popen, workdir: pathlib.Path) -> None:
  """Waits; raises RuntimeError with the end of the output if it failed."""
  if process.wait() != 0:
    tail = (workdir / 'output.txt').read_text(errors='replace')[-3000:]
    raise RuntimeError(f'the run ended with {process.returncode}:\n{tail}')


def _checkpoints(workdir: pathlib.Path) -> list[str]:
  """Changes as soon as the run begins to save."""
  path = workdir / 'checkpoints'
  return sorted(os.listdir(path)) if path.exists() else []


def kill_until(
  command: str,
  workdir: pathlib.Path,
  *,
  seconds: float,
  interval: float,
  seed: int = 0,
) -> int:
  """Kills and restarts for `seconds`, then lets it finish; returns kills."""
  draw = random.Random(seed)
  deadline = time.monotonic() + seconds
  kills = 0
  while time.monotonic() < deadline:
    before = _checkpoints(workdir)
    process = start(command, workdir)
    while process.poll() is None and _checkpoints(workdir) == before:
      time.sleep(0.005)
    try:
      process.wait(timeout=draw.uniform(0, 2 * interval))
    except subprocess.TimeoutExpired:
      os.killpg(process.pid, signal.SIGKILL)
      process.wait()
      kills += 1
      continue
    finish(process, workdir)
    return kills
  finish(start(command, workdir), workdir)
  return kills


def without(value: Any, ignored: Sequence[str] = IGNORED) -> Any:
  """The value without metrics of time and the ignored keys, at any depth."""
  if isinstance(value, Mapping):
    return {
      k: without(v, ignored)
      for k, v in value.items()
      if not TIMED.match(k) and k not in ignored
    }
  return value


@dataclasses.dataclass
class Record:
  """The parts that must be equal: digests of arrays, host state, lines."""

  step: int
  arrays: dict[str, str]
  host_state: Any
  lines: dict[str, list[Any]]


def read_record(workdir: pathlib.Path) -> Record:
  """Reads the newest checkpoint and the files of a finished run."""
  reader = Checkpointer(workdir / 'checkpoints')
  step = reader.latest()
  if step is None:
    raise RuntimeError(f'{workdir} has no checkpoint')
  arrays = {
    name: hashlib.sha256(
      f'{x.dtype}{x.shape}'.encode() + x.tobytes()
    ).hexdigest()
    for name, x in reader.arrays(step).items()
  }
  host_state = without(reader.host_state(step))
  reader.close()
  lines = {
    # Compared as text, in which NaN equals NaN.
    name: [repr(without(row, ())) for row in read_jsonl(workdir / name)]
    for name in (METRICS, ROLLOUTS)
    if (workdir / name).exists()
  }
  return Record(step, arrays, host_state, lines)


def differences(one: Record, two: Record) -> list[str]:
  """The differences, in words; empty if the runs are equal (tier E0)."""
  found = []
  if one.step != two.step:
    found.append(f'last step {one.step} and {two.step}')
  for name in sorted(one.arrays.keys() | two.arrays.keys()):
    if one.arrays.get(name) != two.arrays.get(name):
      found.append(f'array {name}')
  if one.host_state != two.host_state:
    found.append(f'host state {one.host_state} and {two.host_state}')
  for name in sorted(one.lines.keys() | two.lines.keys()):
    rows = one.lines.get(name, []), two.lines.get(name, [])
    if len(rows[0]) != len(rows[1]):
      found.append(f'{name} has {len(rows[0])} and {len(rows[1])} lines')
    pairs = enumerate(zip(*rows, strict=False), start=1)
    wrong = [n for n, (a, b) in pairs if a != b]
    if wrong:
      first = wrong[0] - 1
      found.append(
        f'{name}: {len(wrong)} lines differ, the first is line {wrong[0]}: '
        f'{rows[0][first][:300]} and {rows[1][first][:300]}'
      )
  return found


def sources() -> str:
  """A hash of the code that runs: an edit in between voids a comparison."""
  paths = [p for name in CODE for p in sorted((ROOT / name).rglob('*.py'))]
  return hashlib.sha256(b''.join(p.read_bytes() for p in paths)).hexdigest()


def digest(record: Record) -> str:
  """One hash of everything that is compared."""
  return hashlib.sha256(repr(record).encode()).hexdigest()[:16]


def main(argv: Sequence[str]) -> None:
  """Prints one line per run; exit status 1 if they differ."""
  del argv
  quiet_orbax()
  base = pathlib.Path(_WORKDIR.value or tempfile.mkdtemp(prefix='kill_resume'))
  command, code = _COMMAND.value, sources()
  finish(start(command, base / 'whole'), base / 'whole')
  whole = read_record(base / 'whole')
  print(f'whole:  step {whole.step}, digest {digest(whole)}', flush=True)
  kills = kill_until(
    command,
    base / 'killed',
    seconds=_SECONDS.value,
    interval=_INTERVAL.value,
    seed=_SEED.value,
  )
  killed = read_record(base / 'killed')
  output = (base / 'killed' / 'output.txt').read_text(errors='replace')
  print(
    f'killed: step {killed.step}, digest {digest(killed)}, {kills} kills, '
    f'{output.count("is not used:")} unfinished saves passed over'
  )
  found = differences(whole, killed)
  if sources() != code:
    found.append('the source code has changed during the test')
  if kills < _MIN_KILLS.value:
    found.append(f'only {kills} kills: let the run have more iterations')
  for line in found:
    print(f'DIFFERENT: {line}')
  if found:
    sys.exit(f'files are in {base}')
  print('equal bit for bit')


if __name__ == '__main__':
  os.environ.setdefault('JAX_PLATFORMS', 'cpu')
  _COMMAND = flags.DEFINE_string(
    'command', COMMAND, 'Run to kill; {python} and {workdir} are filled in.'
  )
  _WORKDIR = flags.DEFINE_string('workdir', None, 'Default: a new directory.')
  _SECONDS = flags.DEFINE_float(
    'seconds', 120.0, 'How long to continue killing.'
  )
  _INTERVAL = flags.DEFINE_float('interval', 1.0, 'Mean seconds to a kill.')
  _SEED = flags.DEFINE_integer('seed', 0, 'Of the times of the kills.')
  _MIN_KILLS = flags.DEFINE_integer('min_kills', 5, 'Fewer are a failure.')
  app.run(main)
