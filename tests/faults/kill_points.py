"""Kills a run at listed points with SIGKILL, then compares it with a whole one.

  python tests/faults/kill_points.py

The run has dynamic sampling, a critic, a history reward (HAPO), a posterior
selector (MoPPS), reward workers, and an asynchronous save of every iteration.
Each kill is a process of its own: it continues the run and ends itself at the
n-th call of a function, before it, after it, within it, or a while later. The
functions are patched here; the product has no hooks. A run left in --workdir
is continued. In addition some samples "time out" when they are verified for
the first time, never again: without the journal a redone iteration would see
another reward. Tier E0, as in kill_resume.py.
"""

import argparse
from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import importlib
import importlib.util
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import zlib

_PATH = pathlib.Path(__file__).with_name('kill_resume.py')
_SPEC = importlib.util.spec_from_file_location('kill_resume', _PATH)
kill_resume = importlib.util.module_from_spec(_SPEC)
sys.modules['kill_resume'] = kill_resume

ARGUMENTS = """
--config=configs/bandit.py --method=ppo --set=model.value_head=True
--add=method.shaping=HistoryLength()
--set=method.selector=BetaPosterior(candidate_ratio=2)
--set=method.group_filter=ZeroVariance()
--set=task.num_contexts=16 --set=task.reward_weights={'value':1.0}
--set=rollout.num_prompts=4 --set=rollout.group_size=4
--set=rollout.max_response_tokens=3 --set=rollout.max_rounds=3
--set=evaluation.every=25 --set=evaluation.num_prompts=16
--set=verifier.num_workers=1 --set=checkpoint.every=1
""".split()
ITERATIONS = 200

SAVER = 'rl_jax.checkpoint:Checkpointer'
ORBAX = 'orbax.checkpoint:AsyncCheckpointer'
FILES = 'rl_jax.checkpoint_files'
COLLECT = 'rl_jax.collect'
WRITER = 'rl_jax.metrics:MetricsWriter'
JOURNAL = 'rl_jax.verification_journal:JournaledPool'


@dataclasses.dataclass(frozen=True)
class Fault:
  """Where a process ends itself.

  target: 'module:Class.function'. when: 'before' or 'after' its call number
  `call`, 'half': with half of what it appends written, or seconds after it.
  within: only calls during a call of this function count.
  """

  kind: str
  target: str
  call: int
  when: str | float
  within: str = ''

  def __str__(self):
    name = self.target.split(':')[1]
    inside = self.within and f' within {self.within.split(":")[1]}'
    when = (
      self.when if isinstance(self.when, str) else f'{self.when:.3f} s past'
    )
    return f'{self.kind}: {when} call {self.call} of {name}{inside}'


def _faults() -> list[Fault]:
  draw = random.Random(0)
  prune, commit = f'{SAVER}._prune', f'{FILES}:commit'
  points = [
    ('save', f'{SAVER}.save', 3, 'before'),
    ('save', f'{ORBAX}.save', 2, 'before'),
    ('save', f'{ORBAX}.save', 2, 'after'),
    ('save', f'{ORBAX}.save', 3, 0.002),
    ('save', f'{ORBAX}.save', 2, 0.005),
    ('save', f'{ORBAX}.save', 3, 0.01),
    ('save', f'{ORBAX}.save', 2, 0.02),
    ('save', f'{SAVER}._finish', 3, 'before'),
    ('save', f'{ORBAX}.wait_until_finished', 5, 'after'),
    ('save', commit, 2, 'before'),
    ('save', f'{FILES}:size_and_crc', 3, 'before', commit),
    ('save', f'{FILES}:size_and_crc', 5, 'after', commit),
    ('save', commit, 3, 'after'),
    ('save', prune, 2, 'before'),
    ('save', f'{FILES}:delete', 1, 'before', prune),
    ('save', f'{FILES}:delete', 2, 'after', prune),
    ('rounds', f'{COLLECT}:HostSelector.select', 4, 'after'),
    ('rounds', f'{COLLECT}:HostSelector.observe', 4, 'after'),
    ('rounds', f'{COLLECT}:Sampler.start', 5, 'before'),
    ('rounds', f'{COLLECT}:Sampler.start', 4, 'after'),
    ('rounds', f'{COLLECT}:Collector.verify', 4, 'after'),
    ('rounds', f'{COLLECT}:Collector._fill', 2, 'before'),
    ('rounds', f'{COLLECT}:Collector._fill', 3, 'after'),
    ('journal', f'{JOURNAL}.score', 4, 'after'),
    ('journal', f'{JOURNAL}._append', 4, 'half'),
    ('journal', f'{JOURNAL}.mark', 2, 'after'),
    ('writer', f'{WRITER}._append', 4, 'before'),
    ('writer', f'{WRITER}._append', 3, 'after'),
    ('writer', f'{WRITER}._append', 5, 'half'),
    ('writer', f'{WRITER}._append', 6, 'half'),
    ('writer', f'{WRITER}._log_tensorboard', 2, 'before'),
    ('writer', f'{WRITER}.offsets', 3, 'after'),
    ('writer', f'{WRITER}.truncate_to', 1, 'after'),
  ]
  found = [Fault(*point) for point in points]
  # At random after the first iteration has begun: usually some of them on.
  found += [
    Fault('random', 'rl_jax.loop:Trainer.iteration', 1, draw.uniform(0, 1.5))
    for _ in range(8)
  ]
  draw.shuffle(found)
  return found


def _resolve(target: str) -> tuple[object, str]:
  """(owner, attribute) of 'module:Class.function'."""
  module, _, path = target.partition(':')
  owner = importlib.import_module(module)
  *classes, name = path.split('.')
  for one in classes:
    owner = getattr(owner, one)
  return owner, name


def _die() -> None:
  os.kill(os.getpid(), signal.SIGKILL)
  time.sleep(60)


def _half(owner: object, arguments: Sequence) -> None:
  """Writes half of the last line that the call would append."""
  if isinstance(arguments[0], str):  # MetricsWriter._append(name, rows)
    name, rows = arguments
    file, line = owner._files[name], json.dumps(rows[-1])
  else:  # JournaledPool._append(line)
    file, line = owner._file, json.dumps(arguments[0])
  file.write(line[: len(line) // 2].encode())
  file.flush()


def arm(fault: Fault) -> None:
  """Makes this process end itself."""
  calls, inside = itertools.count(1), threading.local()
  if fault.within:
    owner, name = _resolve(fault.within)
    around = getattr(owner, name)

    def marked(*arguments, **named):
      inside.now = True
      try:
        return around(*arguments, **named)
      finally:
        inside.now = False

    setattr(owner, name, marked)
  owner, name = _resolve(fault.target)
  original = getattr(owner, name)

  def fatal(*arguments, **named):
    counted = not fault.within or getattr(inside, 'now', False)
    hit = counted and next(calls) == fault.call
    if hit and fault.when == 'half':
      _half(arguments[0], arguments[1:])
    if hit and fault.when in ('before', 'half'):
      _die()
    if hit and isinstance(fault.when, float):
      threading.Timer(fault.when, _die).start()
    result = original(*arguments, **named)
    if hit and fault.when == 'after':
      _die()
    return result

  setattr(owner, name, fatal)


def be_moody(workdir: pathlib.Path) -> None:
  """Every eighth sample times out the first time that it is verified."""
  from rl_jax.verification import Outcome, VerifierPool
  from rl_jax.verification_journal import JournaledPool

  marks = workdir / 'verified_before.txt'
  seen = set(marks.read_text().split()) if marks.exists() else set()
  inner, outer = VerifierPool.score, JournaledPool.score
  current = None

  def moody(self, examples, responses):
    outcomes = inner(self, examples, responses)
    if current in seen:
      return outcomes
    return [
      Outcome(None, 'timeout', 'killed after a while')
      if zlib.crc32(f'{current}/{i}'.encode()) % 8 == 0
      else outcome
      for i, outcome in enumerate(outcomes)
    ]

  def journaled(self, examples, responses):
    nonlocal current
    current = str(self._calls)
    outcomes = outer(self, examples, responses)
    with marks.open('a') as file:
      file.write(f'{current}\n')
    return outcomes

  VerifierPool.score, JournaledPool.score = moody, journaled


def run(workdir: pathlib.Path, iterations: int, fault: Fault | None) -> int:
  """The exit status of a process that starts or continues the run.

  Forked from this process, which has imported everything and run nothing.
  """
  workdir.mkdir(parents=True, exist_ok=True)
  sys.stdout.flush()
  pid = os.fork()
  if pid:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
  with contextlib.suppress(BaseException):
    output = os.open(
      workdir / 'output.txt', os.O_WRONLY | os.O_CREAT | os.O_APPEND
    )
    os.dup2(output, 1)
    os.dup2(output, 2)
    os._exit(_train(workdir, iterations, fault))
  os._exit(1)


def _train(workdir, iterations, fault) -> int:
  from experiments import configuration, train

  sys.argv = ['train', *ARGUMENTS, f'--set=iterations={iterations}']
  sys.argv += [f'--workdir={workdir}']
  be_moody(workdir)
  if fault is not None:
    arm(fault)
  try:
    configuration.run(train.main)
  except SystemExit as error:
    return int(error.code or 0)
  except BaseException:
    import traceback

    traceback.print_exc()
    return 1
  return 0


def kill_at_all(
  base: pathlib.Path, iterations: int, deadline: float, say: Callable
) -> dict[str, int]:
  """Kills the run at every point not yet done; kills by kind."""
  log = base / 'faults.jsonl'
  done = log.read_text().splitlines() if log.exists() else []
  kills = dict.fromkeys(('save', 'rounds', 'writer', 'journal', 'random'), 0)
  for number, fault in enumerate(_faults()):
    if number >= len(done):
      if time.monotonic() > deadline:
        sys.exit(f'time is up; the same --workdir={base} continues')
      status = run(base / 'killed', iterations, fault)
      with log.open('a') as file:
        file.write(json.dumps([status, str(fault)]) + '\n')
      say(f'{number + 1}: {fault}: exit status {status}')
    else:
      status = json.loads(done[number])[0]
    kills[fault.kind] += status == -signal.SIGKILL
  return kills


def main() -> None:
  """One line per kill; exit status 1 unless all fired and the runs agree."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--workdir', help='Default: a new directory.')
  parser.add_argument('--iterations', type=int, default=ITERATIONS)
  parser.add_argument('--seconds', type=float, default=1200.0, help='At most.')
  given = parser.parse_args()
  base = pathlib.Path(given.workdir or tempfile.mkdtemp(prefix='kill_points'))
  base.mkdir(parents=True, exist_ok=True)
  os.environ.setdefault('JAX_PLATFORMS', 'cpu')
  os.environ.setdefault('JAX_COMPILATION_CACHE_DIR', str(base / 'compiled'))
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0')
  sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
  # Imported once; nothing below starts a thread or a device before the fork.
  _SPEC.loader.exec_module(kill_resume)
  import experiments.train  # noqa: F401

  deadline = time.monotonic() + given.seconds
  say = lambda text: print(text, flush=True)
  if not (base / 'whole_finished').exists():
    if status := run(base / 'whole', given.iterations, None):
      sys.exit(f'the whole run ended with {status}: see {base}/whole')
    (base / 'whole_finished').touch()
  kills = kill_at_all(base, given.iterations, deadline, say)
  if status := run(base / 'killed', given.iterations, None):
    sys.exit(f'the run cannot be finished ({status}): see {base}/killed')
  _report(base, kills)


def _report(base, kills):
  kill_resume.quiet_orbax()
  whole = kill_resume.read_record(base / 'whole')
  killed = kill_resume.read_record(base / 'killed')
  found = kill_resume.differences(whole, killed)
  timeouts = sum('timeout' in row for row in whole.lines['rollouts.jsonl'])
  output = (base / 'killed' / 'output.txt').read_text(errors='replace')
  print(f'kills: {kills}, {sum(kills.values())} of {len(_faults())}')
  print(f'unfinished saves passed over: {output.count("is not used:")}')
  print(f'timed-out samples in the log: {timeouts}')
  print(f'whole:  step {whole.step}, digest {kill_resume.digest(whole)}')
  print(f'killed: step {killed.step}, digest {kill_resume.digest(killed)}')
  if sum(kills.values()) < len(_faults()):
    found.append('not every point was reached: raise --iterations')
  if not timeouts:
    found.append('no sample has timed out: the journal was not tested')
  for line in found:
    print(f'DIFFERENT: {line}')
  if found:
    sys.exit(f'files are in {base}')
  print('equal bit for bit')


if __name__ == '__main__':
  main()
