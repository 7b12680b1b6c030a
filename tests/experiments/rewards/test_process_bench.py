"""The rules of ProcessBench, by hand."""

import json

import jax
import numpy as np
import pytest

from experiments import evaluate_reward
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.models.transformer import ModelConfig
from rl_jax.tasks.sources import BadRowError


def test_f1_by_hand():
  """Half of the errors and two thirds of the right ones: 4/7."""
  found = evaluate_reward.f1([1, 2, -1, 0, -1], [1, 1, -1, -1, -1])
  assert found == pytest.approx(
    {'acc_error': 0.5, 'acc_correct': 2 / 3, 'f1': 4 / 7}
  )
  assert evaluate_reward.f1([0, 0], [1, -1])['f1'] == 0.0
  scores = [0.9, 0.4, 0.6, 0.2]
  assert evaluate_reward.first_error(scores, 0.5) == 1
  assert evaluate_reward.first_error(scores, 0.4) == 3
  assert evaluate_reward.first_error(scores, 0.2) == -1


def test_scores_of_steps_do_not_depend_on_the_batch():
  """E1: each response in batches of one and of three, padded otherwise."""
  own = ByteTokenizer()
  sizes = dict(width=8, num_heads=1, num_kv_heads=1, head_size=8, mlp_size=8)
  model = ModelConfig(
    vocab_size=own.vocab_size, num_layers=1, value_head=True, **sizes
  )
  params = params_lib.init_params(model, jax.random.key(0))
  params['model']['embed'] *= 30
  params['value_head']['w'] += 1.0
  rows = [('a', ('x\n', 'yz\n')), ('abc', ('w\n',)), ('ab', ('v\n',) * 3)]

  def score(rows, size):
    return evaluate_reward.step_scores(model, params, own, rows, False, size)

  together = score(rows, 3)
  assert [len(row) for row in together] == [2, 1, 3]
  for row, found in zip(rows, together, strict=True):
    np.testing.assert_allclose(score([row], 1)[0], found, atol=1e-5)
  assert np.ptp(np.concatenate(together)) > 0.01


def test_bad_rows_are_named(tmp_path):
  """A label that is not a step."""
  path = tmp_path / 'rows.jsonl'
  row = {'problem': 'x', 'steps': ['a', 'b'], 'label': 1}
  path.write_text(json.dumps(row) + '\n')
  found = evaluate_reward.read_steps(str(path))
  assert found == [('x', ('a\n', 'b\n'), 1, None)]
  ((_, steps, *_),) = evaluate_reward.read_steps(str(path), '')
  assert steps == tuple(step.removesuffix('\n') for step in found[0][1])
  path.write_text(json.dumps(row | {'label': 2}) + '\n')
  with pytest.raises(BadRowError, match='rows.jsonl:1.*is 2, no step'):
    evaluate_reward.read_steps(str(path))


def test_only_the_whole_end_of_a_step_is_replaced(tmp_path):
  """Not the letters that it is made of."""
  path = tmp_path / 'rows.jsonl'
  row = {'problem': 'x', 'steps': ['the end', 'so<end><end>'], 'label': -1}
  path.write_text(json.dumps(row) + '\n')
  ((_, steps, *_),) = evaluate_reward.read_steps(str(path), '<end>')
  assert steps == ('the end<end>', 'so<end>')
