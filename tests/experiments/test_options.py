"""Data with options, from the command line to the numbers."""

import json
import subprocess

from absl import flags
import numpy as np
import pytest

from experiments import evaluate
from experiments.flags import evaluation, outputs
from experiments.papers import recipe as recipe_lib
from experiments.papers import settings, tiny
import rl_jax
from rl_jax.tasks.evaluation_set import OPTION_ACCURACIES

ROWS = [
  {'question': 'Sky?', 'choices': ['red', 'blue', 'green'], 'answer': 1},
  {'question': 'Grass?', 'choices': ['green', 'blue'], 'answer': 0},
  {'question': 'Snow?', 'choices': ['a', 'b', 'white', 'c'], 'answer': 'C'},
]


@pytest.mark.usefixtures('no_mesh_left')
def test_options_of_a_model_directory(tmp_path):
  """Nothing is sampled; each option has a number, which JSON can hold."""
  model, data = str(tmp_path / 'model'), tmp_path / 'rows.jsonl'
  tiny.write_model(settings.sizes('Qwen/Qwen2.5-0.5B'), model)
  data.write_text(''.join(json.dumps(row) + '\n' for row in ROWS))
  values = flags.FlagValues()
  evaluation.define_flags(values)
  arguments = (f'--data={data}', '--options=choices', '--batch_prompts=2')
  values(['evaluate', *arguments, '--num_workers=0'])
  config = evaluation.from_flags(None, values)
  metrics, rows = rl_jax.evaluate(model, config)
  assert {*metrics} == {*OPTION_ACCURACIES, 'n', 'reward_errors'}
  assert metrics['n'] == 3
  logp = rows['option_logp']
  assert (np.isfinite(logp).sum(axis=1) == [3, 2, 4]).all()
  best = np.nanargmax(logp, axis=1)
  np.testing.assert_array_equal(rows['acc'], best == [1, 0, 2])
  assert metrics['acc'] == rows['acc'].mean()
  plain = {name: evaluate._plain(x) for name, x in rows.items()}
  assert plain['option_logp'][1][2:] == [None, None]
  outputs.write_json(str(tmp_path / 'out.json'), plain)
  assert evaluate.generations(rows, 'model') == []


@pytest.mark.usefixtures('no_mesh_left')
def test_the_command_of_a_recipe(tmp_path):
  """It runs as a shell reads it: labels are letters and numbers."""
  recipe = recipe_lib.load('rlhflow')
  (command,) = recipe.measured.values()
  start, model = 'python -m experiments.evaluate', str(tmp_path / 'model')
  tiny.write_model(settings.sizes('Qwen/Qwen2.5-0.5B'), model)
  (source,) = recipe.data
  file = tiny.write_data(recipe, str(tmp_path))[source.name]
  command = command.replace(source.file, file).replace(start, 'printf %s\\\\0')
  done = subprocess.run(['bash', '-c', command], capture_output=True, text=True)
  checkpoint, *words = done.stdout.rstrip('\0').split('\0')
  assert checkpoint == '--checkpoint=models/LLaMA3-SFT-v2'
  values = flags.FlagValues()
  evaluation.define_flags(values)
  values(['evaluate', *words, '--num_workers=0'])
  config = evaluation.from_flags(None, values)
  assert config.task.example('test', 0).prompt.endswith('ice?\nAnswer:')
  metrics, rows = rl_jax.evaluate(model, config)
  assert metrics['n'] == len(recipe.by_hand[source.name])
  np.testing.assert_array_equal(rows['right_option'], [0, 1, 2, 0])
