"""The environment of the guide, in a file outside of the repository."""

import pathlib
import re

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop

pytestmark = pytest.mark.usefixtures('no_mesh_left')

GUIDE = pathlib.Path(__file__).parents[2] / 'docs/guides/environments.md'


def test_a_file_of_the_user_trains(tmp_path):
  """In 20 lines; with workers, which import the file, too."""
  (source,) = re.findall(
    r'```python\n(# guess.py\n.*?)```', GUIDE.read_text(), re.DOTALL
  )
  assert sum(bool(line) for line in source.split('\n')[1:]) <= 20
  (tmp_path / 'guess.py').write_text(source)
  config = configuration.build(
    str(tmp_path / 'guess.py'),
    'grpo',
    [
      *('iterations=1', 'evaluation.every=0', 'verifier.num_workers=1'),
      *('rollout.num_prompts=4', 'rollout.turns.max_turns=3'),
      *('update.minibatch_prompts=4', 'rollout.max_response_tokens=8'),
    ],
  )
  workdir = tmp_path / 'run'
  loop.Trainer(config, str(workdir)).run()
  row = read_jsonl(workdir / 'metrics.jsonl')[-1]
  assert np.isfinite(row['train/loss']) and row['rollout/reward_errors'] == 0
  turns = read_jsonl(workdir / 'rollouts.jsonl')[0]['turns']
  assert turns[0]['observation'] == '?'
