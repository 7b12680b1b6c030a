"""Walks on a torus and what each move adds."""

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.worlds import Coverage

TASK = Coverage(size=3, steps=4)
TOKENIZER = CharTokenizer(Coverage.alphabet)


@pytest.mark.parametrize(
  ('walk', 'gains'),
  [
    ('EESE', [1, 1, 1, 1]),
    ('EWES', [1, 0, 0, 1]),  # back to the first cell, and again
    ('EEEE', [1, 1, 0, 0]),  # round the torus of three columns
    ('EESEN', [1, 1, 1, 1, 0]),  # only the first four moves count
    ('E@S', [1, 0, 0]),
    ('', []),
  ],
)
def test_gains_by_hand(walk, gains):
  """In quarters; their sum is the coverage of a legal walk."""
  assert TASK.gains(walk) == [g / 4 for g in gains]
  found = TASK.reward(TASK.example('train', 0), walk)
  expected = 0.0 if '@' in walk else sum(gains) / 4
  assert found == {'coverage': expected, 'outcome': float(expected == 1)}


def test_targets_cover_most():
  """In every size that is allowed to have as many steps."""
  for size, steps in ((2, 3), (4, 12), (5, 24)):
    task = Coverage(size=size, steps=steps)
    example = task.example('test', 0)
    assert task.reward(example, task.target(example))['outcome'] == 1


def test_verifiers_agree():
  """Rewards of 11,000 random responses, and the gains of their tokens."""
  rng = np.random.default_rng(0)
  tokens = rng.integers(0, TOKENIZER.vocab_size + 1, (11_000, 6))
  tokens[::2] = rng.choice(TOKENIZER.encode('NESW'), tokens[::2].shape)
  tokens = tokens.astype(np.int32)
  length = rng.integers(0, 7, len(tokens)).astype(np.int32)
  example = TASK.example('test', 0)
  answers = TASK.device_answers([example] * len(tokens), TOKENIZER)

  def judge(*x):
    inputs = TASK.row_inputs_device(tokens, length, TOKENIZER)
    return inputs['marginal_gain_BT'], TASK.reward_device(*x, TOKENIZER)

  gain_BT, found = jax.device_get(jax.jit(judge)(tokens, length, *answers))
  for i, row in enumerate(tokens):
    ids = row[: length[i]].tolist()
    ids = ids[: ids.index(1)] if 1 in ids else ids
    text = TOKENIZER.decode(ids)
    expected = TASK.reward(example, text)
    assert {k: x[i] for k, x in found.items()} == pytest.approx(expected)
    seen = [g for g, t in zip(gain_BT[i], ids) if 2 <= t < 7]  # noqa: B905
    assert seen == pytest.approx(TASK.gains(text))
  assert 100 < found['outcome'].sum() < 4400


def test_bad_fields_are_named():
  with pytest.raises(ValueError, match='steps = 9 must be below size.2 = 9'):
    Coverage(size=3, steps=9)
