"""What the benchmark counts, and that its line can be read."""

import json
import subprocess
import sys

import pytest

from experiments import benchmark_costs as costs
from rl_jax import models

STAGES = ('generate', 'score', 'update')
TINY = models.ModelConfig(
  vocab_size=10,
  num_layers=2,
  width=4,
  num_heads=2,
  num_kv_heads=1,
  head_size=2,
  mlp_size=8,
)


def test_flop_by_hand():
  """Per layer 4 (8 + 4 + 24) = 144 weights, output 40; 1 prompt of 3 tokens, 2
  rows of 2: 5 tokens are fed, 4 are scored, 6 + 2 * 4 positions are seen.
  2 * 5 * 2 * 144 + 4 * 14 * 2 * 4 + 2 * 4 * 40 = 3648; an update is thrice."""
  shape = costs.Shape(1, 2, 3, 2)
  assert costs.model_flops(TINY, shape, 'generate') == 3648
  assert costs.model_flops(TINY, shape, 'update') == 3 * 3648
  assert costs.model_flops(TINY, shape, 'step') == 4 * 3648


@pytest.mark.slow
@pytest.mark.parametrize('stage', [*STAGES, 'step'])
def test_one_line_of_json(stage):
  """Every stage runs and reports what it is compared by."""
  out = subprocess.run(
    [
      sys.executable,
      '-m',
      'experiments.benchmark',
      f'--stage={stage}',
      '--num_prompts=2',
      '--group_size=2',
      '--prompt_tokens=4',
      '--new_tokens=4',
      '--repeats=2',
    ],
    check=True,
    capture_output=True,
    text=True,
  ).stdout
  row = json.loads(out)
  assert row['seconds_median'] > 0 and row['share_of_matrix_product'] > 0
  used = {'step': {'generate', 'update'}}.get(stage, {'generate', stage})
  assert set(row['compile_seconds']) == used
