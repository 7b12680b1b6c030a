"""Commands that have no number to show: exit codes, and JSON that is JSON."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEARCH = (
  *('--config=bandit_described', '--method=constrained_rlhf', '--runs=1'),
  '--field=method.credit.Lagrangian.thresholds',
  *('--start=0.5,0.25', '--metric=reward/mean'),
)


def call(*arguments):
  """The finished Python process."""
  return subprocess.run(
    [sys.executable, *map(str, arguments)],
    cwd=ROOT,
    env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': ''},
    capture_output=True,
    text=True,
  )


@pytest.mark.parametrize(
  ('name', 'arguments'),
  [
    (
      'sweep',
      ('--config=configs/worlds/bandit.py', '--method=grpo', '--seeds=1'),
    ),
    ('tools.search', SEARCH),
  ],
)
def test_where_every_run_fails_the_command_fails(name, arguments, tmp_path):
  """The prompts have no place in the model; no point is the best one."""
  done = call(
    '-m',
    f'experiments.{name}',
    *arguments,
    f'--workdir={tmp_path}',
    '--set=rollout.max_prompt_tokens=100000',
  )
  assert done.returncode == 1, done.stderr
  assert 'Traceback' not in done.stderr
  assert 'best:' not in done.stdout
  (line,) = (tmp_path / 'results.jsonl').read_text().splitlines()
  assert 'positions' in json.loads(line)['failed']
  assert str(tmp_path / 'results.jsonl') in done.stdout


def test_an_evaluation_prints_null_for_what_is_no_number():
  """At any depth; other values are as they are."""
  code = (
    'import json; from experiments import evaluate\n'
    'from experiments.flags import outputs\n'
    'nan, inf = float("nan"), float("inf")\n'
    'line = {"a": nan, "b": {"c": -inf}, "d": 0.5, "e": ["x"], "f": 3}\n'
    'print(json.dumps(outputs.finite(line)))\n'
    'print(json.dumps(evaluate._plain([0.5, nan, inf])))\n'
  )
  done = call('-c', code)
  assert done.returncode == 0, done.stderr
  first, second = map(json.loads, done.stdout.splitlines())
  assert first == {'a': None, 'b': {'c': None}, 'd': 0.5, 'e': ['x'], 'f': 3}
  assert second == [0.5, None, None]
