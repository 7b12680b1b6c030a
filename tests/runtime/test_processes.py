"""Two real processes equal one process with the same mesh, and end together."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.checkpoints.files import committed_steps
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts import responses
from rl_jax.runtime import processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 240  # seconds, so that nothing hangs: only a broken test gets there
COUNT = '--xla_force_host_platform_device_count='


class Job:
  """The processes of one command; output goes to process_N.txt in workdir."""

  def __init__(self, workdir, command, *, num_processes, devices):
    self.workdir = workdir
    workdir.mkdir(parents=True, exist_ok=True)
    flags = re.sub(COUNT + r'\d+', '', os.environ.get('XLA_FLAGS', ''))
    environment = {
      **os.environ,
      'JAX_PLATFORMS': 'cpu',
      'XLA_FLAGS': f'{flags} {COUNT}{devices}',
      'PYTHONPATH': str(ROOT),
    }
    extra = [[]]
    if num_processes > 1:
      address = [f'--coordinator=localhost:{free_port()}']
      address += [f'--num_processes={num_processes}']
      extra = [[*address, f'--process_id={i}'] for i in range(num_processes)]
    self.members = []
    for i, more in enumerate(extra):
      with open(workdir / f'process_{i}.txt', 'wb') as output:
        self.members.append(
          subprocess.Popen(
            [sys.executable, *command, *more],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
          )
        )

  def output(self, i):
    """The text that a process has printed."""
    return (self.workdir / f'process_{i}.txt').read_text(errors='replace')

  def wait(self, *members):
    """Exit codes of the processes; kills all and fails at the limit."""
    deadline = time.monotonic() + LIMIT
    try:
      return [
        self.members[i].wait(deadline - time.monotonic())
        for i in members or range(len(self.members))
      ]
    except subprocess.TimeoutExpired:
      self.kill()
      pytest.fail(f'hangs:\n{self.tails()}')

  def finish(self):
    """Waits; fails unless all end well."""
    codes = self.wait()
    assert not any(codes), f'{codes}\n{self.tails()}'

  def tails(self):
    """The ends of all outputs."""
    return '\n'.join(
      f'-- process {i}\n{self.output(i)[-3000:]}'
      for i in range(len(self.members))
    )

  def kill(self):
    """Ends what still runs."""
    for member in self.members:
      if member.poll() is None:
        member.kill()
      member.wait()


def free_port():
  """An unused port."""
  with socket.socket() as found:
    found.bind(('localhost', 0))
    return found.getsockname()[1]


@pytest.fixture
def launch(request):
  """Starts a Job that is killed at the end of its test."""

  def start(workdir, command, **options):
    job = Job(workdir, command, **options)
    request.addfinalizer(job.kill)
    return job

  return start


def train(workdir, *arguments, method='grpo'):
  """The command of a run on the bandit with a signal from the start."""
  return [
    '-m',
    'experiments.train',
    '--config=configs/worlds/bandit.py',
    f'--method={method}',
    f'--workdir={workdir}',
    "--set=task.reward_weights={'value': 1.0}",
    # Also rows that the second process verifies.
    '--set=guards.log_rollouts=8',
    *arguments,
  ]


def without_time(path):
  """Rows of a JSONL file without what may differ between two runs."""
  return [
    {k: v for k, v in row.items() if not k.startswith('time/')}
    for row in read_jsonl(path)
  ]


def arrays(workdir):
  """The newest checkpoint's (arrays, host state without offsets)."""
  saver = Checkpointer(workdir / 'checkpoints')
  step = saver.latest()
  found = saver.arrays(step), saver.host_state(step)
  saver.close()
  found[1].pop('offsets')
  return found


def assert_same_rollouts(one, two, rtol):
  """Lines of equal responses; numbers of tokens exact for rtol 0, else E1.

  They are logged with four digits, of which rounding may move the last one.
  """
  lines = [read_jsonl(path / 'rollouts.jsonl') for path in (one, two)]
  values = [[line.pop('tokens', {}) for line in part] for part in lines]
  assert lines[0] and lines[0] == lines[1]
  if not rtol:
    assert values[0] == values[1]
  for a, b in zip(*values, strict=True):
    assert a.keys() == b.keys() and a.get('text') == b.get('text')
    for name in a.keys() - {'text'}:
      np.testing.assert_allclose(
        a[name], b[name], 1e-3, rtol, err_msg=name, strict=True
      )


def assert_same_run(one, two, rtol):
  """E2 for tokens and rewards; rtol 0: all bit for bit (E0), else E1."""
  assert_same_rollouts(one, two, rtol)
  rows = [without_time(path / 'metrics.jsonl') for path in (one, two)]
  assert len(rows[0]) == len(rows[1])
  for a, b in zip(*rows, strict=True):
    assert a.keys() == b.keys()
    for name in a:
      np.testing.assert_allclose(a[name], b[name], rtol, rtol, err_msg=name)
  (one_arrays, one_host), (two_arrays, two_host) = arrays(one), arrays(two)
  assert one_arrays.keys() == two_arrays.keys()
  for name, x in one_arrays.items():
    # Adam's step has the size of the learning rate, 1e-2.
    size = np.abs(x[np.isfinite(x)]).max(initial=0)  # no record yet: infinite
    atol = rtol * max(1e-2, float(size))
    if x.dtype.kind in 'iub':
      atol = 0.0
    np.testing.assert_allclose(
      x, two_arrays[name], 0, atol, err_msg=name, strict=True
    )
  for host in (one_host, two_host):
    assert np.isfinite(host['counters'].pop('entropy'))
  assert one_host == two_host


@pytest.mark.slow
@pytest.mark.parametrize(
  'layout',
  [
    ['mesh.fsdp=4'],
    ['mesh.data=2', 'mesh.fsdp=2', 'update.microbatch_prompts=4'],
  ],
)
def test_two_processes_equal_one(launch, tmp_path, layout):
  """E2, E1: three iterations, parameters or microbatches split over both."""
  arguments = [
    f'--set={setting}'
    for setting in ('iterations=3', 'evaluation.every=3', *layout)
  ]
  two = launch(
    tmp_path / 'two',
    train(tmp_path / 'two', *arguments),
    num_processes=2,
    devices=2,
  )
  one = launch(
    tmp_path / 'one',
    train(tmp_path / 'one', *arguments),
    num_processes=1,
    devices=4,
  )
  two.finish()
  one.finish()
  assert_same_run(tmp_path / 'one', tmp_path / 'two', rtol=1e-5)
  # Only process 0 shows the progress and the result.
  assert 'done: reward' in two.output(0) and 'iteration 3/3' in two.output(0)
  assert 'done' not in two.output(1) and 'iteration' not in two.output(1)


def test_what_happens_between_processes(launch, tmp_path):
  """E0: agreement, placement, checkpoint and files of two real processes."""
  script = ROOT / 'tests' / 'peer_program.py'
  run = tmp_path / 'run'
  job = launch(run, [script, f'--workdir={run}'], num_processes=2, devices=1)
  job.finish()
  for me in (0, 1):
    found = json.loads(job.output(me).strip().split('\n')[-1])
    assert found == {
      'gather': True,
      'error': 'no such file' if me == 0 else 'process 0: no such file',
      'own': [[0, 1, 2], [3, 4, 5]][me],
      'step': 2,
      'host': {'by': 0},
      'shard': [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]][me],
      'key': [0, 7],
      'numpy': [0, 1, 2],
      'row': 5.0,
      'stop': [False, True],
    }
  assert committed_steps(run / 'checkpoints') == [2]
  (row,) = read_jsonl(run / 'metrics.jsonl')
  assert row['mean'] == 5.0


def rounds_in_slots(launch, folder, *arguments):
  """The lines of tests/slots_program.py: of two processes, and of one."""
  command = [ROOT / 'tests' / 'slots_program.py', *arguments]
  jobs = [
    launch(folder / name, command, num_processes=count, devices=2 // count)
    for name, count in (('two', 2), ('one', 1))
  ]
  for job in jobs:
    job.finish()
  two, one = jobs
  return [
    [json.loads(x) for x in text.splitlines() if x.startswith('{')]
    for text in (two.output(0), two.output(1), one.output(0))
  ]


FEW = '--slots=4 --cache_tokens=128'  # places for four rows


@pytest.mark.parametrize(
  ('orders', 'more'),
  [
    (3, '--slots=8'),
    (3, '--asking --times=5'),
    (3, f'{FEW} --host_tokens=128'),
    pytest.param(3, '--game', marks=pytest.mark.slow),
    pytest.param(20, '--slots=16', marks=pytest.mark.slow),
    pytest.param(6, '--asking', marks=pytest.mark.slow),
    pytest.param(12, f'{FEW} --host_tokens=64', marks=pytest.mark.slow),
    # Each step has collectives between the processes.
    pytest.param(1, '--tensor', marks=pytest.mark.slow),
    pytest.param(
      1, f'--tensor {FEW} --host_tokens=128', marks=pytest.mark.slow
    ),
  ],
)
def test_slow_calls_of_one_process_change_nothing(
  launch, tmp_path, orders, more
):
  """E2 as one process, E0 among seeded orders; a call is of one process only.

  16 rows, also with fewer slots, partners that are asked, places in the cache
  for four rows, or rows that are on both devices; calls of process 1 take 30
  times as long.
  """
  arguments = f'--orders={orders} --slow=1 {more}'.split()
  found = rounds_in_slots(launch, tmp_path, *arguments)
  first, _, by_one = found
  assert [len(rounds) for rounds in found] == [orders] * 3
  for mine, other, whole in zip(*found, strict=True):
    assert mine['tokens'] == other['tokens'] == whole['tokens']
    assert mine['outcomes'] == other['outcomes'] == whole['outcomes']
    assert mine['questions'] == other['questions'] == whole['questions']
    assert mine['log_probs'] == other['log_probs'] == first[0]['log_probs']
    assert mine['sum'] == pytest.approx(whole['sum'], rel=1e-5)
    assert sorted(mine['made'] + other['made']) == whole['made']
    assert min(len(mine['made']), len(other['made'])) > 8
    moved = mine['on_host'], other['on_host'], whole['on_host']
    assert moved[0] == moved[1] <= 128
    assert {x > 0 for x in moved} == {'host_tokens' in more}
  assert {tuple(map(str, one['outcomes'])) for one in by_one} == {
    tuple(map(str, first[0]['outcomes']))
  }
  assert all(bool(one['questions']) == ('asking' in more) for one in by_one)


def test_rows_of_two_devices_wait_on_the_host(launch, tmp_path):
  """E0: of each device's 8 rows 2 have places in its cache, in one process."""
  command = [ROOT / 'tests' / 'slots_program.py', '--slots=4', '--orders=2']
  more = ['--cache_tokens=128', '--host_tokens=128']
  lines = []
  for name, arguments in (('all', []), ('few', more)):
    job = launch(
      tmp_path / name, [*command, *arguments], num_processes=1, devices=2
    )
    job.finish()
    found = [x for x in job.output(0).splitlines() if x.startswith('{')]
    lines.append(list(map(json.loads, found)))
  for one, other in zip(*lines, strict=True):
    assert 0 == one.pop('on_host') < other.pop('on_host') <= 128
    assert one == other


def test_calls_that_fail_in_two_processes(launch, tmp_path):
  """A part of them costs its rows, which all processes count; all of them end
  the round in both, with one message."""
  some = '--failing={"b": "raise", "g": "text"}'
  found = rounds_in_slots(launch, tmp_path / 'some', some, '--failed_share=0.9')
  kinds = [[kind for kind, _ in one[0]['outcomes']] for one in found]
  assert kinds[0] == kinds[1] == kinds[2]
  failed = [kind != 'ok' for kind in kinds[0]]
  assert 0.2 < np.mean(failed) < 0.9 and any(failed[:8]) and any(failed[8:])
  every = json.dumps(dict.fromkeys('abcdefg', 'raise') | {'': 'raise'})
  found = rounds_in_slots(launch, tmp_path / 'all', f'--failing={every}')
  texts = {one[0]['error'] for one in found}
  assert len(texts) == 1 and '16 of 16 episodes' in texts.pop()


# Takes the lock of a directory that has the number of the process in its name.
OWN_DIRECTORIES = """
from absl import app, flags
from experiments.flags import configuration
from experiments.flags import processes as process_flags
from rl_jax.runs import lock
from rl_jax.runtime import processes

def main(argv):
  process_flags.start()
  lock.SHARED_SECONDS = 0.5
  held = lock.Lock(f'{flags.FLAGS.workdir}{processes.index() * DIFFER}')
  held.check()
  processes.gather(None)
  held.release()
  print('done')

flags.DEFINE_string('workdir', None, '')
process_flags.define_flags()
configuration.run(main)
"""


@pytest.mark.parametrize('differ', [0, 1])
def test_hosts_that_share_no_directory_are_named(launch, tmp_path, differ):
  """At once, on all processes: they would wait for the files of each other."""
  run = tmp_path / 'run'
  code = OWN_DIRECTORIES.replace('DIFFER', str(differ))
  command = ['-c', code, f'--workdir={run}']
  job = launch(run, command, num_processes=2, devices=1)
  codes = job.wait()
  if not differ:
    assert codes == [0, 0] and 'done' in job.output(1), job.tails()
    return
  assert 0 not in codes, job.tails()
  assert f'{run}1: --workdir must be one directory that all' in job.output(0)
  assert not (run / 'lock.json').exists()


# Posterior selector, dynamic sampling, two optimizer steps; the verifiers are
# processes, and evaluation samples for pass@k.
STATEFUL = (
  '--set=method.selector=BetaPosterior()',
  '--set=method.group_filter=ZeroVariance()',
  '--set=rollout.num_prompts=4',
  '--set=update.minibatch_prompts=2',
  '--set=evaluation.every=3',
  '--set=evaluation.num_samples=2',
  '--set=verifier.num_workers=1',
)
OVERLAPPED = (
  '--set=rollout.parts=2',
  '--set=rollout.staleness=1',
  '--set=guards.max_logp_gap=null',
  '--set=rollout.speculative=PreviousResponses(tokens=2,prompts=5)',
)
# Without weight, so that groups of equal rewards are drawn again.
JUDGE = (
  '--add=judges=Judge(weight=0.0,'
  "template='{prompt}{response}',labels=('a','b'))"
)


@pytest.mark.slow
@pytest.mark.parametrize(
  ('method', 'arguments', 'devices'),
  [
    ('hapo', (*STATEFUL, '--set=mesh.fsdp=2', '--set=mesh.tensor=2'), 2),
    # Every row lies on both processes.
    ('hapo', (*STATEFUL, '--set=mesh.tensor=2'), 1),
    # So do the tokens of every response.
    ('hapo', (*STATEFUL, '--set=mesh.sequence=2'), 1),
    # Each verifies its rows of every part, and keeps the same earlier ones.
    ('hapo', (*STATEFUL, *OVERLAPPED, '--set=mesh.fsdp=2'), 1),
    # Questions to a judge are read by both, in evaluations, too.
    ('hapo', (*STATEFUL, JUDGE, '--set=mesh.fsdp=2'), 1),
    # Rows are read, branched and continued.
    ('spo_chain', ('--set=mesh.data=2', '--set=evaluation.every=0'), 1),
  ],
)
def test_states_and_rounds_are_the_same(
  launch, tmp_path, method, arguments, devices
):
  """E2, E1: histories, posteriors, rounds, and their place in a checkpoint."""
  for name, count in (('two', 2), ('one', 1)):
    job = launch(
      tmp_path / name,
      train(tmp_path / name, *arguments, '--set=iterations=6', method=method),
      num_processes=count,
      devices=2 * devices // count,
    )
    job.finish()
  assert_same_run(tmp_path / 'one', tmp_path / 'two', rtol=1e-5)
  rows = read_jsonl(tmp_path / 'two' / 'metrics.jsonl')
  assert max(row.get('rollout/rounds', 0) for row in rows) > 1


def until_committed(job, step):
  """Returns when a checkpoint of that step or a later one exists."""
  deadline = time.monotonic() + LIMIT
  while max(committed_steps(job.workdir / 'checkpoints'), default=0) < step:
    assert time.monotonic() < deadline, job.tails()
    assert all(m.poll() is None for m in job.members), job.tails()
    time.sleep(0.02)


@pytest.mark.slow
def test_killed_and_stopped_runs_continue(launch, tmp_path):
  """E0: each process killed once, one stopped; the rest ends by itself."""
  total = 30
  arguments = [
    f'--set=iterations={total}',
    '--set=mesh.fsdp=2',
    '--set=evaluation.every=0',
    '--set=checkpoint.every=1',
    '--peer_timeout_seconds=5',
  ]
  whole, parts = tmp_path / 'whole', tmp_path / 'parts'
  options = dict(num_processes=2, devices=1)
  launch(whole, train(whole, *arguments), **options).finish()
  for victim, step in ((1, 3), (0, 8)):
    job = launch(parts, train(parts, *arguments), **options)
    until_committed(job, step)
    job.members[victim].kill()
    (code,) = job.wait(1 - victim)
    assert code != 0, job.tails()
    assert re.search(
      'the newest checkpoint is valid|another task died|'
      'distributed service detected fatal errors',
      job.output(1 - victim),
    ), job.tails()
  job = launch(parts, train(parts, *arguments), **options)
  until_committed(job, 13)
  job.members[1].send_signal(signal.SIGTERM)
  assert job.wait() == [143, 143], job.tails()
  assert 13 <= committed_steps(parts / 'checkpoints')[-1] < total
  launch(parts, train(parts, *arguments), **options).finish()
  assert_same_run(whole, parts, rtol=0)


def in_slots(workdir, *arguments):
  """The command of a run of episodes in slots."""
  return [
    '-m',
    'experiments.train',
    '--config=configs/worlds/keydoor.py',
    '--method=grpo',
    f'--workdir={workdir}',
    '--set=rollout.num_prompts=4',
    '--set=rollout.group_size=4',
    '--set=rollout.turns.max_turns=4',
    '--set=update.minibatch_prompts=null',
    '--set=guards.max_logp_gap=null',
    '--set=guards.log_rollouts=16',
    '--set=verifier.num_workers=2',
    '--set=mesh.data=1',
    *arguments,
  ]


TIMED = ('time/', 'device/', 'cache/', 'calls/', 'episodes/')
TIMED += ('rollout/waited_for',)
PLAYED = ('turns', 'seed', 'end', 'last_observation')  # of own rows only


def record(workdir):
  """(metrics without times, responses without what one process knows)."""
  rows = [
    {k: v for k, v in row.items() if not k.startswith(TIMED)}
    for row in read_jsonl(workdir / 'metrics.jsonl')
  ]
  lines = [
    {k: v for k, v in line.items() if k not in (*PLAYED, 'tokens')}
    for line in read_jsonl(workdir / 'rollouts.jsonl')
  ]
  return rows, lines


@pytest.mark.slow
@pytest.mark.parametrize(
  'arguments',
  [
    (),
    ('--set=rollout.staleness=1',),
    # Six rows of each batch have places.
    (
      '--set=rollout.staleness=1',
      '--set=rollout.cache_tokens=480',
      '--set=rollout.host_cache_tokens=320',
    ),
    (
      '--set=rollout.staleness=1',
      '--set=rollout.max_rounds=2',
      '--set=method.group_filter=AccuracyBand(low=0.0,high=0.9)',
    ),
  ],
)
def test_runs_in_slots_are_those_of_one_process(launch, tmp_path, arguments):
  """E2: batches, rewards and metrics; evaluations, too."""
  more = ('--set=iterations=4', '--set=evaluation.every=2', *arguments)
  more = (*more, '--set=evaluation.num_prompts=3', '--set=mesh.fsdp=2')
  for name, count in (('two', 2), ('one', 1)):
    command = in_slots(tmp_path / name, *more)
    options = {'num_processes': count, 'devices': 2 // count}
    launch(tmp_path / name, command, **options).finish()
  (rows, lines), (known, expected) = (
    record(tmp_path / name) for name in ('two', 'one')
  )
  assert len(lines) == 4 * 16 and lines == expected
  for row, other in zip(rows, known, strict=True):
    assert row.keys() == other.keys()
    for name, value in other.items():
      assert row[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize('order', ['fixed', 'arrival'])
def test_runs_in_slots_that_are_killed_continue(launch, tmp_path, order):
  """E0: both processes are killed, twice, while episodes of two updates are
  played. By arrival the whole run has the closings that the other one wrote.
  """
  arguments = [
    '--set=iterations=12',
    '--set=evaluation.every=0',
    '--set=checkpoint.every=1',
    '--set=rollout.staleness=1',
    f'--set=rollout.order={order}',
    '--set=mesh.fsdp=2',
    '--peer_timeout_seconds=5',
  ]
  whole, parts = tmp_path / 'whole', tmp_path / 'parts'
  options = {'num_processes': 2, 'devices': 1}
  for step in (3, 7):
    job = launch(parts, in_slots(parts, *arguments), **options)
    until_committed(job, step)
    job.kill()
  launch(parts, in_slots(parts, *arguments), **options).finish()
  names = {path.name for path in (parts / 'answers').iterdir()}
  assert {name[:9] for name in names} >= {'process_0', 'process_1'}
  if order == 'arrival':
    (whole / 'answers').mkdir(parents=True)
    shutil.copy(parts / 'answers' / 'closings.jsonl', whole / 'answers')
  launch(whole, in_slots(whole, *arguments), **options).finish()
  found, expected = record(parts), record(whole)
  assert found == expected
  (mine, _), (other, _) = arrays(parts), arrays(whole)
  jax.tree.map(np.testing.assert_array_equal, mine, other)


@pytest.mark.slow
def test_a_stuck_process_ends_the_others(launch, tmp_path):
  """Heartbeats are still in time, but nothing is exchanged."""
  job = launch(
    tmp_path / 'run',
    train(
      tmp_path / 'run',
      '--set=iterations=100000',
      '--set=mesh.fsdp=2',
      '--set=evaluation.every=0',
      '--set=checkpoint.every=1',
      '--stall_seconds=20',
    ),
    num_processes=2,
    devices=1,
  )
  until_committed(job, 2)
  job.members[1].send_signal(signal.SIGSTOP)
  assert job.wait(0) == [75], job.tails()
  # The other one may be stopped at any point, also while it saves.
  said = r'has waited for another process( or the disk)? for 20 seconds'
  assert re.search(said, job.output(0)), job.tails()


@pytest.mark.slow
def test_evaluation_by_two_processes(launch, tmp_path):
  """The same JSON line, from process 0 only."""
  run = tmp_path / 'run'
  launch(
    run, train(run, '--set=iterations=2'), num_processes=1, devices=1
  ).finish()
  lines = []
  for count in (1, 2):
    job = launch(
      tmp_path / f'evaluation_{count}',
      [
        '-m',
        'experiments.evaluate',
        f'--checkpoint={run}',
        '--data=bandit',
        '--num_samples=4',
        '--limit=7',
        '--max_new_tokens=2',
      ],
      num_processes=count,
      devices=2 // count,
    )
    job.finish()
    lines.append(
      [line for line in job.output(0).split('\n') if 'pass_at' in line]
    )
  assert len(lines[0]) == 1 and lines[0] == lines[1]
  assert 'pass_at' not in job.output(1)


STUCK = """
import contextlib, time
from rl_jax.runtime import watchdog
def a_function_that_hangs():
  time.sleep(60)
watchdog.start(0.3, 'process 3 of 4')
with {0}:
  a_function_that_hangs()
"""


@pytest.mark.parametrize(
  ('inside', 'doing'),
  [
    ('contextlib.nullcontext()', 'been busy or stuck'),
    ('watchdog.waiting()', 'waited for another process'),
    ('watchdog.checkpointing()', 'waited for another process or the disk'),
  ],
)
def test_the_watchdog_prints_the_stack_of_a_process(inside, doing):
  """It names process, reason, advice and stack; the exit code is documented."""
  done = subprocess.run(
    [sys.executable, '-c', STUCK.format(inside)],
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=LIMIT,
  )
  assert done.returncode == 75
  assert f'process 3 of 4 has {doing} for 0.3 seconds' in done.stderr
  assert 'run the same command again' in done.stderr
  assert 'a_function_that_hangs' in done.stderr


@pytest.mark.parametrize(
  ('address', 'message'),
  [
    (dict(coordinator='a:1', num_processes=2), "'a:1', 2 and None"),
    (dict(process_id=1), 'go together'),
    ({}, 'should be defined. Without a launcher that JAX knows, give'),
  ],
)
def test_a_missing_address_is_named(monkeypatch, address, message):
  """A part of one, or none where JAX finds no launcher."""

  def initialize(*unused, **also_unused):
    raise ValueError('coordinator_address should be defined.')

  monkeypatch.setattr(jax.distributed, 'initialize', initialize)
  with pytest.raises(ValueError, match=re.escape(message)):
    processes.start(**address)


def test_rows_are_shared_out(monkeypatch):
  """Every row belongs to exactly one process, the shares differ by one."""
  monkeypatch.setattr(processes, 'count', lambda: 3)
  for size in (0, 1, 7, 9):
    parts = []
    for i in range(3):
      monkeypatch.setattr(processes, 'index', lambda i=i: i)
      parts.append(range(size)[processes.own(size)])
    assert [x for part in parts for x in part] == list(range(size))
    lengths = [len(part) for part in parts]
    assert max(lengths) - min(lengths) <= 1


def test_only_own_rows_leave_the_device(monkeypatch):
  """The second of two processes reads prompts 1 and 2 of three, not 0.

  No process reads the fourth prompt, which only fills the batch.
  """
  fetched, device_get = [], jax.device_get

  def record(tree):
    fetched.extend(x.shape for x in jax.tree.leaves(tree))
    return device_get(tree)

  monkeypatch.setattr(jax, 'device_get', record)
  monkeypatch.setattr(processes, 'count', lambda: 2)
  monkeypatch.setattr(processes, 'index', lambda: 1)
  token_BT = jnp.arange(40).reshape(8, 5)
  traj = types.SimpleNamespace(
    group_size=2,
    response_BT=token_BT,
    logp_behaviour_BT=-token_BT,
    length_B=jnp.arange(8),
    finished_B=jnp.ones(8, bool),
    turn_BT=None,
    extras={},
  )
  host = responses.fetch_responses(traj, 3)
  np.testing.assert_array_equal(host['response'], token_BT[2:6])
  np.testing.assert_array_equal(host['logp'], -token_BT[2:6])
  np.testing.assert_array_equal(host['length'], range(8))
  assert set(fetched) == {(8,), (4, 5)}
  stop = types.SimpleNamespace(text=lambda ids: f'{ids[-1]}')
  own = responses.own_rows(3, 2)
  texts = responses.Texts(host, own, stop)
  assert list(texts) == ['11', '17', '23', '29']


class Hub:
  """process_allgather among Python objects: what each would receive."""

  def __init__(self, monkeypatch, messages):
    self.rounds = 0
    self.messages = messages  # of the other processes, after ours
    monkeypatch.setattr(processes, 'count', lambda: 1 + len(messages))
    monkeypatch.setattr(processes, '_capacity', 8)
    monkeypatch.setattr(processes, '_agreed', {})
    monkeypatch.setattr(processes, '_proposals', {})
    monkeypatch.setattr(
      processes.multihost_utils, 'process_allgather', self.gather
    )

  def gather(self, buffer):
    self.rounds += 1
    width = len(buffer) - 4
    rows = [buffer]
    for message in self.messages:
      row = np.zeros_like(buffer)
      row[:4] = np.array([len(message)], '<u4').view(np.uint8)
      data = np.frombuffer(message[:width], np.uint8)
      row[4 : 4 + len(data)] = data
      rows.append(row)
    return np.stack(rows)


def test_messages_of_any_length_and_the_lowest_proposal(monkeypatch):
  """Two collectives when a buffer is outgrown, then one; floats stay exact."""
  value = [0.1 + 0.2, None, 'x' * 50]
  hub = Hub(
    monkeypatch, [b'[2, "long", {"a": 6, "b": 7}]', b'[1, 1, {"a": 5}]']
  )
  assert processes.gather(value) == [value, 1, 'long']
  assert hub.rounds == 2
  assert processes.agreed('a', None) == 5 and processes.agreed('b', 9) == 7
  assert processes.gather(value) == [value, 1, 'long']
  assert hub.rounds == 3
  assert processes.agreed('b', None) == 9  # we are process 0
  assert processes.agreed('c', None) is None


def test_errors_of_process_0_are_raised_everywhere(monkeypatch):
  """With its text; a ValueError stays one."""
  Hub(monkeypatch, [b'[1, [null, null, false], {}]'])

  def fails():
    raise OSError('disk full')

  with pytest.raises(OSError, match='disk full'):
    processes.on_main(fails)
  assert processes.on_main(lambda: {'step': 3}) == {'step': 3}
  monkeypatch.setattr(processes, 'index', lambda: 1)
  for is_value, kind in (('true', ValueError), ('false', RuntimeError)):
    monkeypatch.setattr(
      processes,
      '_exchange',
      lambda message, text=is_value: [
        f'[0, [null, "process 0: no", {text}], {{}}]'.encode(),
        message,
      ],
    )
    with pytest.raises(kind, match='process 0: no'):
      processes.on_main(fails)
