"""The command that trains an acceptance head."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import pytest

from rl_jax.decoding.drafts import acceptance
from rl_jax.models import presets
from rl_jax.models.files import model_dir
from rl_jax.models.params import init_params
from rl_jax.runs.policy import task_tokenizer
from rl_jax.worlds import Chain

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_a_head_is_trained_written_and_measured(tmp_path):
  """Untrained models: no draft is stopped, or all are after `least` tokens."""
  tokenizer = task_tokenizer(Chain())
  for seed, name in enumerate(('policy', 'draft')):
    cfg = presets.small(vocab_size=tokenizer.vocab_size, num_layers=1)
    params = init_params(cfg, jax.random.key(seed))
    model_dir.save_model(str(tmp_path / name), cfg, params, tokenizer)
  done = subprocess.run(
    [
      *(sys.executable, '-m', 'experiments.papers.decoding.acceptance_head'),
      f'--checkpoint={tmp_path}/policy',
      f'--draft={tmp_path}/draft',
      f'--out={tmp_path}/head',
      '--data=configs/worlds/chain.py',
      *('--limit=8', '--batch_prompts=4', '--num_samples=2'),
      *('--max_new_tokens=8', '--tokens=3', '--least=1', '--steps=60'),
    ],
    cwd=ROOT,
    env={**os.environ, 'JAX_PLATFORMS': 'cpu'},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  fit, never, own, head = map(json.loads, done.stdout.strip().splitlines())
  assert 0 < fit['accepted'] < 1 and fit['tokens'] > 20
  assert fit['loss_last'] < fit['loss_first']
  acceptance.load_head(str(tmp_path / 'head'), 64)
  lines = {line.pop('stops'): line for line in (never, own, head)}
  assert never['drafted_length'] == 3
  assert lines['probabilities']['drafted_length'] <= 3
  assert all(1 <= line['accepted_length'] <= 4 for line in lines.values())
  # Nearly nothing is accepted, and both ways of stopping know it.
  assert lines['head']['drafted_length'] < 3
