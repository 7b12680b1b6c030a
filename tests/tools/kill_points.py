"""Kills a run at listed points with SIGKILL, then compares it with a whole one.

  python tests/tools/kill_points.py
  python tests/tools/kill_points.py --rollout=parts,staleness,previous
  python tests/tools/kill_points.py --rollout=episodes
  python tests/tools/kill_points.py --rollout=episodes,ahead --kinds=turns
  python tests/tools/kill_points.py --rollout=episodes,host --kinds=copies

The run has dynamic sampling, a critic, a history reward (HAPO), a posterior
selector (MoPPS), workers, and an asynchronous save of every iteration.
Each kill is a separate process: it continues the run and ends itself at the
n-th call of a function, before it, after it, within it, or a while later (see
fault_points.py). A run left in --workdir is continued. In addition some samples
"time out" when they are verified for the first time, never again: without the
journal a redone iteration would see another reward. --rollout names ways of
sampling, see ROLLOUTS, and --kinds the points. Tier E0, as in kill_resume.py.
With episodes, no call that has a line in the journal may be made once more.
"""

import argparse
from collections.abc import Callable
import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import sys
import tempfile
import time


def _load(name):
  """A module beside this file, which is on no import path."""
  path = pathlib.Path(__file__).with_name(f'{name}.py')
  spec = importlib.util.spec_from_file_location(name, path)
  sys.modules[name] = module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


fault_points = _load('fault_points')

ARGUMENTS = """
--method=ppo --set=model.value_head=True
--add=method.shaping=HistoryLength() --add=method.shaping=KLInReward(coef=0.01)
--set=method.shaping.0=null
--set=method.selector=BetaPosterior(candidate_ratio=2)
--set=method.group_filter=ZeroVariance()
--set=rollout.num_prompts=4 --set=rollout.group_size=4
--set=rollout.max_rounds=3
--set=evaluation.every=25 --set=evaluation.num_prompts=16
--set=verifier.num_workers=1 --set=checkpoint.every=1
""".split()
RESPONSES = """
--config=configs/worlds/bandit.py --set=rollout.max_response_tokens=3
--set=task.num_contexts=16 --set=task.reward_weights={'value':1.0}
""".split()
# In place of RESPONSES.
EPISODES = """
--config=configs/worlds/keydoor.py --set=rollout.max_response_tokens=20
--set=rollout.turns.max_turns=4 --set=task.num_train=16
--set=update.minibatch_prompts=null
""".split()
# By name in --rollout. The draft model is a run of two iterations.
ROLLOUTS = {
  'episodes': EPISODES,
  'ahead': [  # episodes that start an update early
    '--set=rollout.staleness=1',
    '--set=method.group_filter=null',
    '--set=guards.max_logp_gap=null',
  ],
  'host': [  # 4 of 16 rows have a place in the cache, 6 may wait on the host
    '--set=rollout.cache_tokens=80',
    '--set=rollout.host_cache_tokens=120',
  ],
  'parts': ['--set=rollout.parts=2'],
  'staleness': [
    '--set=rollout.staleness=2',
    '--set=guards.max_logp_gap=null',
  ],
  'previous': [
    '--set=rollout.speculative=PreviousResponses(tokens=2,prompts=5)'
  ],
  'draft_model': [
    "--set=rollout.speculative=DraftModel(path='{draft}',tokens=2)"
  ],
}
ITERATIONS = 100
GRACE_SECONDS = 60.0  # after SIGTERM: the rest of an iteration and one save


def run(
  workdir: pathlib.Path,
  arguments: list[str],
  fault: fault_points.Fault | None = None,
) -> int:
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
    os._exit(_train(workdir, arguments, fault))
  os._exit(1)


def _train(workdir, arguments, fault) -> int:
  from experiments import train
  from experiments.flags import configuration

  fields = [text.split('=')[:2] for text in arguments]
  common = [x for x in ARGUMENTS if x.split('=')[:2] not in fields]
  sys.argv = ['train', *common, *arguments, f'--workdir={workdir}']
  fault_points.time_out_once(workdir)
  fault_points.count_calls(workdir)
  if fault is not None:
    fault_points.arm(fault)
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
  base: pathlib.Path,
  arguments: list[str],
  points: list[fault_points.Fault],
  deadline: float,
  say: Callable,
) -> dict[str, int]:
  """Kills the run at every point not yet done; kills by kind."""
  log = base / 'faults.jsonl'
  done = log.read_text().splitlines() if log.exists() else []
  kills = dict.fromkeys((point.kind for point in points), 0)
  for number, fault in enumerate(points):
    if number >= len(done):
      if time.monotonic() > deadline:
        sys.exit(f'time is up; the same --workdir={base} continues')
      status = run(base / 'killed', arguments, fault)
      if fault.kind == 'term':
        _check_grace(base / 'killed' / 'output.txt', say)
      with log.open('a') as file:
        file.write(json.dumps([status, str(fault)]) + '\n')
      say(f'{number + 1}: {fault}: exit status {status}')
    else:
      status = json.loads(done[number])[0]
    expected = 143 if fault.kind == 'term' else -signal.SIGKILL
    kills[fault.kind] += status == expected
  return kills


def _check_grace(output, say):
  words = output.read_text(errors='replace').rpartition('signalled at ')[2]
  seconds = time.time() - float(words.split()[0])
  say(f'out {seconds:.2f} seconds after SIGTERM')
  if seconds > GRACE_SECONDS:
    sys.exit(f'longer than the grace time of {GRACE_SECONDS} seconds')


def _arguments(base, rollout, iterations) -> list[str]:
  """The arguments of the run; trains its draft model first if it has one."""
  draft = base / 'draft'
  short = [*RESPONSES, '--set=iterations=2']
  if 'draft_model' in rollout and run(draft, short):
    sys.exit(f'the draft model cannot be trained: see {draft}')
  found = [] if 'episodes' in rollout else list(RESPONSES)
  found += [text for name in rollout for text in ROLLOUTS[name]]
  found = [text.replace('{draft}', str(draft)) for text in found]
  return [f'--set=iterations={iterations}', *found]


def _names(text: str) -> list[str]:
  return text.split(',') if text else []


def _flags() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--workdir', help='Default: a new directory.')
  parser.add_argument('--iterations', type=int, default=ITERATIONS)
  parser.add_argument('--seconds', type=float, default=1200.0, help='At most.')
  text = f'Of {", ".join(ROLLOUTS)}; joined by commas.'
  parser.add_argument('--rollout', type=_names, default=[], help=text)
  text = 'Kinds of points, joined by commas; default: all.'
  parser.add_argument('--kinds', type=_names, default=[], help=text)
  given = parser.parse_args()
  if wrong := set(given.rollout) - set(ROLLOUTS):
    parser.error(f'--rollout: {sorted(wrong)}, not of {", ".join(ROLLOUTS)}')
  known = {point.kind for point in _points(given)}
  if wrong := set(given.kinds) - known:
    parser.error(f'--kinds: {sorted(wrong)}, not of {", ".join(sorted(known))}')
  return given


def _points(given) -> list[fault_points.Fault]:
  return fault_points.faults(
    *(name in given.rollout for name in ('episodes', 'host'))
  )


def main() -> None:
  """One line per kill; exit status 1 unless all fired and the runs agree."""
  given = _flags()
  points = _points(given)
  if given.kinds:
    points = [point for point in points if point.kind in given.kinds]
  base = pathlib.Path(given.workdir or tempfile.mkdtemp(prefix='kill_points'))
  base.mkdir(parents=True, exist_ok=True)
  os.environ.setdefault('JAX_PLATFORMS', 'cpu')
  os.environ.setdefault('JAX_COMPILATION_CACHE_DIR', str(base / 'compiled'))
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0')
  sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
  # Imported once; nothing below starts a thread or a device before the fork.
  kill_resume = _load('kill_resume')
  import experiments.train  # noqa: F401

  deadline = time.monotonic() + given.seconds

  def say(text):
    return print(text, flush=True)

  arguments = _arguments(base.resolve(), given.rollout, given.iterations)
  if not (base / 'whole_finished').exists():
    if status := run(base / 'whole', arguments):
      sys.exit(f'the whole run ended with {status}: see {base}/whole')
    (base / 'whole_finished').touch()
  kills = kill_at_all(base, arguments, points, deadline, say)
  if status := run(base / 'killed', arguments):
    sys.exit(f'the run cannot be finished ({status}): see {base}/killed')
  _report(base, kills, len(points), kill_resume)


def _report(base, kills, points, kill_resume):
  kill_resume.quiet_orbax()
  whole = kill_resume.read_record(base / 'whole')
  killed = kill_resume.read_record(base / 'killed')
  found = kill_resume.differences(whole, killed)
  calls, again, wrong = fault_points.made_twice(base / 'killed')
  timeouts = sum('timeout' in row for row in whole.lines['rollouts.jsonl'])
  output = (base / 'killed' / 'output.txt').read_text(errors='replace')
  print(f'kills: {kills}, {sum(kills.values())} of {points}')
  print(f'unfinished saves passed over: {output.count("is not used:")}')
  print(f'timed-out samples in the log: {timeouts}')
  print(f'calls: {calls}; made again as they had no line yet: {again}')
  print(f'whole:  step {whole.step}, digest {kill_resume.digest(whole)}')
  print(f'killed: step {killed.step}, digest {kill_resume.digest(killed)}')
  if sum(kills.values()) < points:
    found.append('not every point was reached: raise --iterations')
  found += [f'a call with a line was made again: {key}' for key in wrong]
  if not timeouts:
    found.append('no sample has timed out: the journal was not tested')
  for line in found:
    print(f'DIFFERENT: {line}')
  if found:
    sys.exit(f'files are in {base}')
  print('equal bit for bit')


if __name__ == '__main__':
  main()
