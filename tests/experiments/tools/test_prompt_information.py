"""The command: checkpoints of a run, and its errors."""

import json
import pathlib
import subprocess
import sys

from absl import flags
import pytest

from configs.worlds import bandit
from experiments.tools import prompt_information
from rl_jax.overrides import override
from rl_jax.runs.loop import Trainer

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments):
  """The finished process."""
  command = [
    sys.executable,
    '-m',
    'experiments.tools.prompt_information',
    *arguments,
  ]
  return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
  ('values', 'error'),
  [
    ({'num_prompts': 1}, r'Draws.num_prompts = 1 is outside \[2'),
    ({'num_samples': 0}, 'Draws.num_samples = 0'),
    ({}, '--config is missing: nowhere is not a work directory'),
    ({'config': 'bandit', 'all_steps': True}, 'nowhere holds 0 steps'),
    ({'config': 'bandits'}, "mean 'bandit'"),
  ],
)
def test_mistakes(values, error):
  """Each is named before a model is read."""
  found = flags.FLAGS
  if not found.is_parsed():
    found.mark_as_parsed()
  old = {name: found[name].value for name in (*values, 'checkpoint')}
  try:
    for name, value in {**values, 'checkpoint': 'nowhere'}.items():
      found[name].value = value
    with pytest.raises(Exception, match=error):
      prompt_information.main([])
  finally:
    for name, value in old.items():
      found[name].value = value


@pytest.mark.slow
def test_lines_of_a_run(toy, tmp_path):
  """One for each step; the same one for a single step; an unknown one is an
  error.
  """
  config = bandit.get_config(toy.get_method('grpo'))
  sets = {
    'evaluation.every': '0',
    'verifier.num_workers': '0',
    'iterations': '40',
    'checkpoint.every': '40',
    'checkpoint.weights_every': '20',
  }
  for path, value in sets.items():
    config = override(config, path, value)
  workdir = str(tmp_path / 'run')
  Trainer(config, workdir).run()
  command = (f'--checkpoint={workdir}', '--num_samples=8')
  done = run(*command, '--all_steps')
  assert done.returncode == 0, done.stderr
  first, last = map(json.loads, done.stdout.splitlines())
  assert (first['step'], last['step']) == (20, 40)
  assert last['num_prompts'] == 8 and last['num_responses'] == 64
  assert last['information'] > 0.5 > first['information']
  assert last['information'] < last['information_limit'] < 2.08
  assert last['retrieval'] > last['retrieval_by_chance'] == 1 / 8
  done = run(*command, '--step=20', '--batch_prompts=3')
  again = json.loads(done.stdout)
  assert again.pop('checkpoint') == first.pop('checkpoint') == workdir
  assert again == pytest.approx(first, rel=1e-3)
  done = run(*command, '--step=30')
  assert done.returncode == 2
  assert 'no checkpoint of iteration 30; there are: 20, 40' in done.stderr
