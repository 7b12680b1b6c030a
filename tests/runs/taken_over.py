"""Runs that are paused at listed points and taken over; for test_take_over.

  python tests/runs/taken_over.py DIRECTORY 'POINT, WAY' ...

Without a language model: the files of a run, a save of every step. Each run is
forked from this process, which has imported everything and run nothing. The old
run pauses itself at its point. The new one takes over and pauses itself halfway
(`midway`) or ends (`ended`); then the old one continues. The last line is JSON:
{case: [exit code of the old run, of the new run]}; output_old.txt and
output_new.txt have what they said. The case `whole` is an undisturbed run.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import sys

import jax
import jax.numpy as jnp

from rl_jax.records.checkpoints.checkpointer import (
  CheckpointConfig,
  abstract_tree,
)
from rl_jax.records.checkpoints.files import quiet_orbax
from rl_jax.records.metrics import DelayedMetrics, MetricsWriter
from rl_jax.runs import guards
from rl_jax.runs.lock import Lock
from rl_jax.runs.saving import Saver
from rl_jax.tasks import Example
from rl_jax.verification.numbered_rewards import NumberedRewards
from rl_jax.verification.pool import Outcome

PATH = pathlib.Path(__file__).resolve().parents[1] / 'tools/fault_points.py'
SPEC = importlib.util.spec_from_file_location('fault_points', PATH)
fault_points = importlib.util.module_from_spec(SPEC)
sys.modules['fault_points'] = fault_points
SPEC.loader.exec_module(fault_points)

TOTAL, HALF = 9, 5
SAVER = 'rl_jax.records.checkpoints.checkpointer:Checkpointer'
CHECK, FILES = 'rl_jax.runs.lock:Lock.check', 'rl_jax.records.checkpoints.files'
LINES = 'rl_jax.records.line_file:LineFile'
WRITER, JOURNAL = 'rl_jax.runtime.writer:Writer', fault_points.JOURNAL
# Name -> where the old run pauses: target, call, when, within.
POINTS = {
  'before an append': (f'{LINES}.append', 7, 'before'),
  'between check and append': (CHECK, 7, 'after', f'{LINES}.append'),
  'in the middle of a line': (f'{fault_points.WRITER}._append', 8, 'half'),
  'before a save': (f'{SAVER}.save', 4, 'before'),
  'between check and the folder of a save': (
    *(CHECK, 4, 'after'),
    f'{SAVER}.save',
  ),
  'while arrays are written': (f'{fault_points.ORBAX}.save', 4, 0.002),
  'after arrays were written': (
    *(f'{fault_points.ORBAX}.wait_until_finished', 4, 'after'),
    f'{SAVER}._finish',
  ),
  'before a commit': (f'{FILES}:commit', 4, 'before'),
  'between check and the name of a save': (
    *(CHECK, 3, 'after'),
    f'{SAVER}._finish',
  ),
  'before a deletion': (f'{FILES}:delete', 1, 'before', f'{SAVER}._prune'),
  'between check and deletion': (CHECK, 1, 'after', f'{SAVER}._prune'),
  'in a deletion': (CHECK, 2, 'before', f'{SAVER}._prune'),
  'before the journal': (f'{JOURNAL}._append', 4, 'before'),
  'between check and journal': (CHECK, 4, 'after', f'{JOURNAL}._append'),
  'in a line of the journal': (f'{JOURNAL}._append', 4, 'half'),
  'between check and another file of the journal': (
    *(CHECK, 1, 'after'),
    f'{JOURNAL}._opened',
  ),
  'at its end': ('rl_jax.runs.lock:Lock._remove', 1, 'before'),
}


class Judge:
  """A pool whose outcomes are a function of the response."""

  def reward(self, examples, responses, known, heard):
    """Its number, unless it is known."""
    found = dict(known)
    for place, text in enumerate(responses):
      if place not in known:
        found[place] = Outcome({'outcome': float(text)})
        heard(place, found[place], 0.0, 0.0)
    return [found[place] for place in range(len(examples))]

  def close(self):
    """Nothing to close."""


def update(state, step):
  """The next state and its mean."""
  key = jax.random.fold_in(state['key'], step)
  x = 0.9 * state['x'] + jax.random.normal(key, (3000,))
  return {**state, 'x': x}, {'mean': x.mean()}


def train(workdir, take_over):
  """All steps, from the newest checkpoint on."""
  quiet_orbax()
  lock = Lock(workdir, take_over)
  journal = NumberedRewards(Judge(), workdir, 'task', lock.writer)
  saver = Saver(workdir, CheckpointConfig(keep_last=2), lock.writer)
  writer = MetricsWriter(workdir, trackers=(), writer=lock.writer)
  delayed = DelayedMetrics(writer)
  state = {'x': jnp.zeros(3000), 'key': jax.random.key(0)}
  found, step, host = saver.restore(abstract_tree(state)), 0, {}
  if found:
    state, step, host = found.tree, found.step, found.host_state
  journal.restore(host.get('calls', 0))
  writer.truncate_to(host.get('offsets', {}), next_step=step + 1)
  with contextlib.ExitStack() as stack:
    for one in (lock.release, writer.close, saver.close, journal.close):
      stack.callback(one)
    while step < TOTAL:
      lock.check()
      state, metrics = update(state, step)
      step += 1
      example = Example(prompt='', answer='', id=step)
      (outcome,) = journal.reward([example], [str(step)])
      writer.log_rollouts(step, [{'reward': outcome.components['outcome']}] * 3)
      delayed.push(step, metrics)
      row = delayed.flush()
      host = {'offsets': writer.offsets(), 'calls': journal.mark()}
      saver.save(step, state, host, row)
      oldest = saver.oldest_host_state()
      journal.forget(oldest.get('calls', 0))
    saver.check_newest()


def start(workdir, name, fault=None, take_over=False):
  """The process of a run."""
  sys.stdout.flush()
  pid = os.fork()
  if pid:
    return pid
  code = 3
  with contextlib.suppress(BaseException):
    output = os.open(f'{workdir}/output_{name}.txt', os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if fault is not None:
      fault_points.arm(fault_points.Fault('pause', *fault))
    try:
      train(f'{workdir}/run', take_over)
      code = 0
    except guards.StopRunError as error:
      print(f'error: {error}', flush=True)
      code = 1
    except BaseException:
      import traceback

      traceback.print_exc()
  os._exit(code)


def wait(pid, options=0):
  """The exit status of a process; None: it is paused."""
  _, status = os.waitpid(pid, options)
  if os.WIFSTOPPED(status):
    return None
  return os.waitstatus_to_exitcode(status)


def play(folder, fault, midway):
  """Exit codes of both runs."""
  os.makedirs(f'{folder}/run')
  old = start(folder, 'old', fault)
  if (code := wait(old, os.WUNTRACED)) is not None:
    raise RuntimeError(f'{folder}: the old run ended with {code}')
  there = (f'{SAVER}.save', HALF, 'before') if midway else None
  new = start(folder, 'new', there, take_over=True)
  code = wait(new, os.WUNTRACED)
  os.kill(old, signal.SIGCONT)
  old_code = wait(old)
  if code is None:
    os.kill(new, signal.SIGCONT)
    code = wait(new)
  return old_code, code


def main(base, *cases):
  """One after the other."""
  os.makedirs(f'{base}/whole/run')
  codes = {'whole': [wait(start(f'{base}/whole', 'new'))]}
  for case in cases:
    name, way = case.split(', ')
    codes[case] = play(f'{base}/{case}', POINTS[name], way == 'midway')
  print(json.dumps(codes))


if __name__ == '__main__':
  main(*sys.argv[1:])
