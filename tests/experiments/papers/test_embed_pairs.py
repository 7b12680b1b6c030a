"""Distances of chosen responses from their prompts."""

import datetime
import json
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

from experiments.papers.preferences import embed_pairs
from rl_jax.models import presets
from rl_jax.models.files import model_dir
from rl_jax.models.params import init_params
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.tasks import PreferenceRows

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_cosine_distance():
  """(1, 0) and (0.6, 0.8): 0.4, whatever the lengths are."""
  one, other = np.array([1.0, 0.0]), np.array([0.6, 0.8])
  assert embed_pairs.distance(3 * one, other) == pytest.approx(0.4)
  assert embed_pairs.distance(one, -one) == 2.0
  assert embed_pairs.distance(one, 0 * one) == 1.0


def test_rows_of_tables_become_json():
  """Parquet has dates and bytes."""
  row = {'prompt': 'a', 'date': datetime.date(2026, 1, 2), 'raw': b'x'}
  assert embed_pairs.with_distance(row, 0.5) == {
    **{'prompt': 'a', 'date': '2026-01-02', 'raw': "b'x'"},
    'semantic_distance': 0.5,
  }


@pytest.mark.slow
def test_pairs_are_embedded(tmp_path):
  """A response that repeats its prompt has distance 0; padding changes
  nothing."""
  tokenizer = ByteTokenizer()
  cfg = presets.small(vocab_size=tokenizer.vocab_size, num_layers=1)
  params = init_params(cfg, jax.random.key(0))
  model_dir.save_model(str(tmp_path / 'model'), cfg, params, tokenizer)
  pairs = [
    {'prompt': 'a red cat', 'chosen': 'a red cat', 'rejected': 'b', 'id': 7},
    {'prompt': 'a red cat', 'chosen': 'xyz', 'rejected': 'b'},
  ]
  data = tmp_path / 'pairs.jsonl'
  data.write_text(''.join(json.dumps(pair) + '\n' for pair in pairs))
  found = []
  for tokens in (16, 40):
    out = tmp_path / f'{tokens}.jsonl'
    command = [
      *(
        sys.executable,
        '-m',
        'experiments.papers.preferences.embed_pairs',
        f'--out={out}',
      ),
      *(f'--model={tmp_path}/model', f'--data={data}'),
      f'--max_tokens={tokens}',
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found.append([row.pop('semantic_distance') for row in rows])
    assert rows == pairs
  np.testing.assert_allclose(found[0], found[1], atol=1e-5)
  assert found[0][0] < 1e-6 < 1e-3 < found[0][1]
  task = PreferenceRows(path=str(out))
  chosen = task.recorded(task.example('train', 1))[0]
  assert chosen.distance == pytest.approx(found[1][1])
  data.write_text('')
  command[3] = f'--out={tmp_path}/empty.jsonl'
  done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 2 and 'has no rows' in done.stderr
  assert not (tmp_path / 'empty.jsonl').exists()
