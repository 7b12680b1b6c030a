"""A run killed at any moment and restarted equals a whole one (tier E0)."""

import importlib.util
import pathlib
import signal
import sys
import textwrap

import numpy as np
import pytest

from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.metrics import MetricsWriter

PATH = pathlib.Path(__file__).with_name('kill_resume.py')
SPEC = importlib.util.spec_from_file_location('kill_resume', PATH)
kill_resume = importlib.util.module_from_spec(SPEC)
sys.modules['kill_resume'] = kill_resume
SPEC.loader.exec_module(kill_resume)

# Checkpoints, metrics and kills without a language model: saves every step.
COUNTING_RUN = textwrap.dedent("""
  import sys
  import jax, jax.numpy as jnp
  from rl_jax.records.checkpoints.checkpointer import (
    Checkpointer, abstract_tree)
  from rl_jax.records.metrics import DelayedMetrics, MetricsWriter
  from rl_jax.runtime.stop_signal import StopSignal

  workdir, total = sys.argv[1], int(sys.argv[2])
  saver = Checkpointer(f'{workdir}/checkpoints', keep_last=2)
  writer = MetricsWriter(workdir, trackers=())
  delayed = DelayedMetrics(writer)
  state = {'x': jnp.zeros(3000), 'key': jax.random.key(0)}
  found, step = saver.restore(abstract_tree(state)), 0
  if found:
    state, step = found.tree, found.step
  writer.truncate_to(found.host_state['offsets'] if found else {})

  @jax.jit
  def update(state, step):
    key = jax.random.fold_in(state['key'], step)
    x = 0.9 * state['x'] + jax.random.normal(key, (3000,))
    return {**state, 'x': x}, {'mean': x.mean()}

  with StopSignal() as stop:
    while step < total and not stop.requested:
      state, metrics = update(state, step)
      step += 1
      writer.log_rollouts(step, [{'reward': step % 7}] * 3)
      delayed.push(step, metrics)
      delayed.flush()
      saver.save(step, state, {'step': step, 'offsets': writer.offsets()})
    saver.close()
    writer.close()
    stop.exit_if_requested()
""")


def make_run(workdir, values=(1.0, 2.0), parameter=1.0, step=2):
  saver = Checkpointer(workdir / 'checkpoints')
  writer = MetricsWriter(workdir, trackers=())
  for i, value in enumerate(values, start=1):
    writer.log_rollouts(i, [{'reward': value}])
    writer.log(i, {'reward/mean': value, 'time/x': np.random.rand()})
  tree = {'w': np.full(3, parameter)}
  saver.save(step, tree, {'n': 1, 'offsets': writer.offsets()})
  saver.close()
  writer.close()
  return kill_resume.read_record(workdir)


def test_the_comparison_sees_every_kind_of_difference(tmp_path):
  """Equal runs pass, each deviation is named."""
  one = make_run(tmp_path / 'one', (1.0, np.nan))
  same = make_run(tmp_path / 'same', (1.0, np.nan))
  assert kill_resume.differences(one, same) == []
  assert kill_resume.digest(one) == kill_resume.digest(same)
  cases = {
    'parameter': ({'parameter': 1.0 + 1e-15}, 'array w'),
    'metric': ({'values': (1.0, 2.5)}, 'metrics.jsonl: 1 lines differ'),
    'missing': ({'values': (1.0,)}, 'metrics.jsonl has 2 and 1 lines'),
    'step': ({'step': 3}, 'last step 2 and 3'),
  }
  for name, (change, text) in cases.items():
    changed = {'values': (1.0, np.nan), **change}
    other = make_run(tmp_path / name, **changed)
    assert text in '\n'.join(kill_resume.differences(one, other)), name
    assert kill_resume.digest(one) != kill_resume.digest(other)


def killed_and_whole(tmp_path, command, *, seconds, interval):
  whole, killed = tmp_path / 'whole', tmp_path / 'killed'
  kill_resume.finish(kill_resume.start(command, whole), whole)
  kills = kill_resume.kill_until(
    command, killed, seconds=seconds, interval=interval
  )
  found = kill_resume.differences(
    kill_resume.read_record(whole), kill_resume.read_record(killed)
  )
  return kills, found


@pytest.mark.slow
def test_checkpoints_and_metrics_survive_kills(tmp_path):
  """E0 of the infrastructure: a save is in flight at nearly any time."""
  script = tmp_path / 'run.py'
  script.write_text(COUNTING_RUN)
  kills, found = killed_and_whole(
    tmp_path,
    f'{{python}} {script} {{workdir}} 80',
    seconds=15,
    interval=0.3,
  )
  assert found == []
  assert kills >= 3


@pytest.mark.slow
def test_the_bandit_survives_kills(tmp_path):
  """E0 of a whole training run, shortened: see `make test-faults`."""
  command = kill_resume.COMMAND.replace('iterations=200', 'iterations=60')
  kills, found = killed_and_whole(tmp_path, command, seconds=40, interval=1.0)
  assert found == []
  assert kills >= 2


@pytest.mark.slow
def test_sigterm_saves_and_exits_with_the_documented_code(tmp_path):
  """Stopped in the middle, run again: equal to a whole run."""
  script = tmp_path / 'run.py'
  script.write_text(COUNTING_RUN)
  command = f'{{python}} {script} {{workdir}} 80'
  whole, stopped = tmp_path / 'whole', tmp_path / 'stopped'
  kill_resume.finish(kill_resume.start(command, whole), whole)
  process = kill_resume.start(command, stopped)
  metrics = stopped / 'metrics.jsonl'
  while not metrics.exists() or not metrics.stat().st_size:
    assert process.poll() is None
  process.send_signal(signal.SIGTERM)
  assert process.wait() == 143
  assert 0 < kill_resume.read_record(stopped).step < 80
  kill_resume.finish(kill_resume.start(command, stopped), stopped)
  assert (
    kill_resume.differences(
      kill_resume.read_record(whole), kill_resume.read_record(stopped)
    )
    == []
  )
