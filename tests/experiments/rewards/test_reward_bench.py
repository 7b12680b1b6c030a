"""The rules of RewardBench 2, by hand."""

import json
import pathlib

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

  def score(pairs, size):
    return evaluate_reward.scores(
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
  (one,) = evaluate_reward.read(str(path))
  assert (one.subset, one.prompt) == ('Math', 'p')
  assert (one.right, one.wrong) == (['a'], ['b'])
  path.write_text(json.dumps(row | {'chosen': []}) + '\n')
  with pytest.raises(BadRowError, match="bench.jsonl.*'chosen' is not text"):
    evaluate_reward.read(str(path))


def test_scores_are_rows_of_preferences(tmp_path):
  """A file of comparisons becomes one of scored responses, in its order."""
  comparisons = [
    evaluate_reward.Comparison('s', *row)
    for row in (('1', 'p', ['a'], ['b']), ('2', 'q', ['c'], ['d']))
  ]
  rows = evaluate_reward.scored_rows(comparisons, [1.0, 0.5, 2.0, 3.0])
  path = tmp_path / 'scores.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = PreferenceRows(path=str(path))
  logged = [task.recorded(task.example('train', i)) for i in range(2)]
  assert [[x.text for x in row] for row in logged] == [['a', 'b'], ['c', 'd']]
  assert [[x.reward for x in row] for row in logged] == [[1.0, 0.5], [2.0, 3.0]]


FOLDER = pathlib.Path(__file__).parents[2] / 'tasks' / 'preferences'


@pytest.mark.parametrize(
  'name', ['implicit', 'conversational', 'implicit_conversational']
)
def test_pairs_of_other_forms_are_those_of_the_task(name, tmp_path):
  """And what is written with scores is read as the same pairs."""
  comparisons = evaluate_reward.read(str(FOLDER / f'{name}.jsonl'))
  found = evaluate_reward.scored_rows(comparisons, [float(x) for x in range(4)])
  path = tmp_path / 'scores.jsonl'
  lines = (json.dumps(evaluate_reward.as_pair(row)) + '\n' for row in found)
  path.write_text(''.join(lines))
  task = PreferenceRows(path=str(FOLDER / f'{name}.jsonl'))
  scored = PreferenceRows(path=str(path))
  for index, one in enumerate(comparisons):
    pair = task.recorded(task.example('train', index))
    assert [*one.right, *one.wrong] == [x.messages or x.text for x in pair]
    again = scored.recorded(scored.example('train', index))
    assert [x.messages or x.text for x in again] == [*one.right, *one.wrong]
    assert [x.reward for x in again] == [2 * index, 2 * index + 1]


def test_tools_are_kept_beside_scores(tmp_path):
  path, tools = tmp_path / 'bench.jsonl', [{'name': 'add'}]

  def turn(role, text):
    return {'role': role, 'content': text}

  row = {'prompt': [turn('user', 'p')], 'tools': tools}
  row |= {x: [turn('assistant', x)] for x in ('chosen', 'rejected')}
  path.write_text(json.dumps(row) + '\n')
  (one,) = evaluate_reward.read(str(path))
  assert one.arguments == {'tools': tools}
  (written,) = evaluate_reward.scored_rows([one], [1.0, 0.0])
  assert written['tools'] == tools and 'chat_template_kwargs' not in written


def test_calibration_by_hand():
  """Gaps ln 3 (twice) and -ln 3: confidence 0.75, right in two of three."""
  third = np.log(3.0)
  found = evaluate_reward.calibration([third, third, -third])
  assert found['pairwise_accuracy'] == pytest.approx(2 / 3)
  assert found['calibration_error'] == pytest.approx(0.75 - 2 / 3)
  expected = -(2 * np.log(0.75) + np.log(0.25)) / 3
  assert found['pairwise_nll'] == pytest.approx(expected)
  # Calibrated: right in three of four, at 0.75; ties are half right at 0.5.
  assert evaluate_reward.calibration([third] * 3 + [-third])[
    'calibration_error'
  ] == (pytest.approx(0.0, abs=1e-12))
  tied = evaluate_reward.calibration([0.0])
  assert tied['calibration_error'] == 0 and tied['pairwise_accuracy'] == 0.5
