"""The rules of RewardBench 2, by hand."""

import json

import jax
import numpy as np
import pytest

from experiments import evaluate_reward
from experiments.rewards import reward_bench
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.models.transformer import ModelConfig
from rl_jax.tasks import PreferenceRows
from rl_jax.tasks.sources import BadRowError


@pytest.mark.parametrize(
  'right, wrong, expected',
  [
    ([1.0], [1.0, 0.0, 0.0], 0.5),
    ([0.0], [1.0, 0.0, 0.0], 0.0),
    ([2.0], [1.0, 0.0, 0.0], 1.0),
    ([1.0], [1.0, 1.0, 1.0], 0.25),
  ],
)
def test_best_of_four(right, wrong, expected):
  assert reward_bench.best_of(right, wrong) == expected


def test_ties_by_hand():
  """Spread 0.5, gaps 1.5 and 2: 1 + 0.01 tanh(2)."""
  prompts = {'tied:1': ([3.0, 2.5], [1.0]), 'ref:1': ([2.0], [0.0])}
  assert reward_bench.ties(prompts) == pytest.approx(1.009640, abs=1e-6)
  prompts['tied:1'] = ([3.0, 3.0], [1.0])  # spread 0: tanh(inf)
  assert reward_bench.ties(prompts) == pytest.approx(1.01)
  prompts['tied:1'] = ([3.0, 1.0], [2.0])  # one wrong, gap -1, spread 2
  expected = 0.3 + 0.01 * np.tanh(-1.5)
  assert reward_bench.ties(prompts) == pytest.approx(expected)
  with pytest.raises(ValueError, match="'tied:1' has no row 'ref:1'"):
    reward_bench.ties({'tied:1': ([1.0], [0.0])})


def test_sections_count_equally():
  rows = [('a', '1', [1.0], [0.0])] * 3 + [('b', '2', [0.0], [1.0])]
  assert reward_bench.sections(rows) == {'a': 1.0, 'b': 0.0, 'mean': 0.5}


def test_scores_do_not_depend_on_the_batch():
  """E1: each completion in batches of one and of three, padded otherwise."""
  model = ModelConfig(
    vocab_size=ByteTokenizer().vocab_size,
    num_layers=1,
    width=8,
    num_heads=1,
    num_kv_heads=1,
    head_size=8,
    mlp_size=8,
    value_head=True,
  )
  params = params_lib.init_params(model, jax.random.key(0))
  params['model']['embed'] *= 30
  params['value_head']['w'] += 1.0
  pairs = [('a', 'xy'), ('abc', 'z'), ('ab', 'wxyz')]
  score = lambda pairs, size: evaluate_reward.scores(
    model, params, ByteTokenizer(), pairs, False, size
  )
  together = score(pairs, 3)
  alone = [score([pair], 1)[0] for pair in pairs]
  np.testing.assert_allclose(together, alone, atol=1e-5)
  assert np.ptp(together) > 0.01


def test_rows_are_read_and_named(tmp_path):
  path = tmp_path / 'bench.jsonl'
  row = {'prompt': 'p', 'chosen': ['a'], 'rejected': 'b', 'subset': 'Math'}
  path.write_text(json.dumps(row) + '\n')
  ((subset, _, *rest),) = evaluate_reward.read(str(path))
  assert (subset, *rest) == ('Math', 'p', ['a'], ['b'])
  path.write_text(json.dumps(row | {'chosen': []}) + '\n')
  with pytest.raises(BadRowError, match="bench.jsonl.*'chosen' is no text"):
    evaluate_reward.read(str(path))


def test_scores_are_rows_of_preferences(tmp_path):
  """A file of comparisons becomes one of scored responses, in its order."""
  comparisons = [('s', '1', 'p', ['a'], ['b']), ('s', '2', 'q', ['c'], ['d'])]
  rows = evaluate_reward.scored_rows(comparisons, [1.0, 0.5, 2.0, 3.0])
  path = tmp_path / 'scores.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = PreferenceRows(path=str(path))
  logged = [task.logged(task.example('train', i)) for i in range(2)]
  assert [[x.text for x in row] for row in logged] == [['a', 'b'], ['c', 'd']]
  assert [[x.reward for x in row] for row in logged] == [[1.0, 0.5], [2.0, 3.0]]
