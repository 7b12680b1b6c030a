"""A run that was taken over while it was paused does no harm (tier E0)."""

import importlib.util
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from etils import epath
import pytest

from rl_jax.records.checkpoints import files
from rl_jax.records.metrics import read_jsonl

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(path):
  """A module that is on no import path."""
  spec = importlib.util.spec_from_file_location(path.stem, path)
  sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


taken_over = load(ROOT / 'tests/runs/taken_over.py')
kill_resume = load(ROOT / 'tests/tools/kill_resume.py')
FEW = [
  'between check and append, midway',
  'while arrays are written, ended',
  'between check and the name of a save, midway',
  'between check and deletion, ended',
]
ALL = [
  f'{point}, {way}'
  for point in taken_over.POINTS
  for way in ('midway', 'ended')
]


def problems(folder, case, codes, whole):
  """The fault of a case, in words."""
  old, new = codes
  run, found = folder / case / 'run', []
  said = (folder / case / 'output_old.txt').read_text()
  if new != 0:
    found.append(f'the new run ended with {new}')
  at_end = case.startswith('at its end')  # all had been written
  if (old, 'this run writes nothing more' in said) != (
    (0, False) if at_end else (1, True)
  ):
    found.append(f'the old run ended with {old}: {said[-500:]}')
  found += kill_resume.differences(whole, kill_resume.read_record(run))
  steps = [row['step'] for row in read_jsonl(run / 'metrics.jsonl')]
  if steps != [*range(1, taken_over.TOTAL + 1)]:
    found.append(f'metrics.jsonl has the steps {steps}')
  saved = epath.Path(run / 'checkpoints')
  found += [
    reason
    for step in files.all_steps(saved)
    if (reason := files.verify(files.step_path(saved, step)))
  ]
  if files.all_steps(saved) != [taken_over.TOTAL - 1, taken_over.TOTAL]:
    found.append(f'there are the checkpoints {files.all_steps(saved)}')
  if (run / 'lock.json').exists():
    found.append('lock.json is left')
  return [f'{case}: {text}' for text in found]


@pytest.mark.parametrize(
  'cases', [FEW, pytest.param(ALL, marks=pytest.mark.slow)], ids=['few', 'all']
)
def test_metrics_and_checkpoints_are_those_of_one_run(tmp_path, cases):
  """E0: equal to an undisturbed run, wherever the old run was paused."""
  program = ROOT / 'tests/runs/taken_over.py'
  done = subprocess.run(
    [sys.executable, program, tmp_path, *cases],
    env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  codes = json.loads(done.stdout.strip().split('\n')[-1])
  whole = kill_resume.read_record(tmp_path / 'whole' / 'run')
  found = [
    line
    for case in cases
    for line in problems(tmp_path, case, codes[case], whole)
  ]
  assert not found, '\n'.join(found)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_trainers_are_taken_over_at_random_moments(tmp_path, seed):
  """E0 but for time: paused after some saves, continues beside the new one."""
  draw = random.Random(seed)
  command = kill_resume.COMMAND.replace('iterations=200', 'iterations=40')
  whole, run = tmp_path / 'whole', tmp_path / 'run'
  kill_resume.finish(kill_resume.start(command, whole), whole)
  old = kill_resume.start(command, run)
  saved = epath.Path(run / 'checkpoints')

  def until(step):
    while max(files.committed_steps(saved), default=0) < step:
      assert old.poll() is None
      time.sleep(0.005)
    time.sleep(draw.uniform(0, 0.2))

  until(5)
  os.killpg(old.pid, signal.SIGSTOP)
  new = kill_resume.start(command + ' --take_over', run)
  until(15)
  os.killpg(old.pid, signal.SIGCONT)
  assert old.wait() == 1
  kill_resume.finish(new, run)
  records = [kill_resume.read_record(folder) for folder in (whole, run)]
  assert kill_resume.differences(*records) == []
  said = (run / 'output.txt').read_text()
  assert f'process {new.pid} on ' in said and 'writes nothing more' in said
