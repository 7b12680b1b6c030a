"""Options by log-likelihood, against a loop, in batches of any size."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from rl_jax import config as config_lib
from rl_jax.config import EvaluationConfig
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.measures import option_scores
from rl_jax.measures.option_scores import OptionScores, OptionSet
from rl_jax.models import heads
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.rollouts.prompts import OverlongPromptError
from rl_jax.runs import evaluation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import ChoiceRows, EvaluationSet, SetAverage
from rl_jax.tasks.base import Option
from rl_jax.tasks.evaluation_set import OPTION_ACCURACIES
from rl_jax.worlds import Bandit

TOKENIZER = CharTokenizer('abcdefg? ')
ROWS = [
  {'q': 'a?', 'options': ['b', 'cd'], 'right': 0},
  {'q': 'abc?', 'options': ['ee', 'f', 'gab'], 'right': 2},
  {'q': 'f?', 'options': ['c', 'd'], 'right': 1},
  {'q': 'gg gg?', 'options': ['abcde', 'a', 'b', 'ga'], 'right': 3},
  {'q': 'e?', 'options': ['a', 'a b c'], 'right': 0},
]


@pytest.fixture
def task(tmp_path):
  """ROWS, whose longest option has 6 tokens with its space."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in ROWS))
  return ChoiceRows(
    sources={'test': str(path)},
    question='{q}',
    options='options',
    gold='right',
  )


def scores(task, tiny, batch=8, rows=64, limit=8, devices=1, **mesh):
  """OptionScores of the tiny model, and its weights."""
  model = dataclasses.replace(tiny.CFG, vocab_size=TOKENIZER.vocab_size)
  found = mesh_lib.make_mesh(
    mesh_lib.MeshConfig(**mesh), jax.devices()[:devices]
  )
  # The prompt without 'Question:' and 'Answer:', whose letters are unknown.
  plain = dataclasses.replace(task.template, text='{question}')
  task = dataclasses.replace(task, template=plain)
  prompts = OptionSet(task, 'test', TOKENIZER, 16, max_option_tokens=limit)
  return OptionScores(prompts, model, found, batch, rows), found


def test_log_likelihoods_are_those_of_a_loop(tiny, plain_forward, task):
  """E1: a textbook forward pass of each prompt with each option by itself."""
  measured, _ = scores(task, tiny)
  params = tiny.params()
  _, rows = measured.run(params, 5)
  model = dataclasses.replace(tiny.CFG, vocab_size=TOKENIZER.vocab_size)
  for n, row in enumerate(ROWS):
    prompt = np.asarray([TOKENIZER.encode(row['q'])])
    for g, option in enumerate(row['options']):
      response = np.asarray([TOKENIZER.encode(f' {option}')])
      ones = np.ones(response.shape, np.float32)
      hidden = plain_forward(
        params, model, prompt, np.ones(prompt.shape), response, ones
      )
      logp = jax.nn.log_softmax(heads.logits(params, model, hidden))
      expected = sum(float(logp[0, t, x]) for t, x in enumerate(response[0]))
      np.testing.assert_allclose(rows['option_logp'][n, g], expected, rtol=1e-5)
  assert np.isnan(rows['option_logp'][0, 2:]).all()
  np.testing.assert_array_equal(rows['right_option'], [0, 2, 1, 3, 0])


@pytest.mark.parametrize('batch', [1, 2, 3])
def test_batches_of_any_size(tiny, task, batch):
  """E1: the batch changes nothing, nor do microbatches."""
  params = tiny.params()
  right, rows = scores(task, tiny)[0].run(params, 5)
  found, own = scores(task, tiny, batch=batch, rows=1)[0].run(params, 5)
  for name in OPTION_ACCURACIES:
    np.testing.assert_array_equal(found[name], right[name])
  np.testing.assert_allclose(own['option_logp'], rows['option_logp'], rtol=1e-5)
  _, first = scores(task, tiny, batch=batch)[0].run(params, 2)
  np.testing.assert_allclose(
    first['option_logp'], rows['option_logp'][:2, :3], rtol=1e-5
  )


@pytest.mark.devices
def test_devices_share_the_rows(tiny, task):
  """E1: 4 devices by 2; their batch is a multiple of 8."""
  params = tiny.params()
  _, rows = scores(task, tiny)[0].run(params, 5)
  measured, mesh = scores(task, tiny, batch=3, devices=8, data=4, fsdp=2)
  with jax.set_mesh(mesh):
    _, found = measured.run(params, 5)
  np.testing.assert_allclose(
    found['option_logp'], rows['option_logp'], rtol=1e-5
  )


def test_accuracies_by_hand():
  """The second option is right. Sums -4, -6, lengths 2 and 3 characters.

  acc chooses -4; per character they are equal, and the first one wins; of bytes
  the second has 4 (a letter of two), of tokens 5.
  """
  options = [
    [(Option('ab', ' ', False), [1, 2]), (Option('abé', ' ', True), [1] * 5)]
  ]
  found = option_scores.accuracies(np.array([[-4.0, -6.0, np.nan]]), options)
  assert {name: x.tolist() for name, x in found.items()} == {
    'acc': [0.0],
    'acc_per_character': [0.0],
    'acc_per_byte': [1.0],
    'acc_per_token': [1.0],
  }
  assert tuple(found) == OPTION_ACCURACIES


@pytest.mark.parametrize(
  ('logp', 'right'),
  [([-1.0, -1.0], 1.0), ([-np.inf, -9.0], 0.0), ([np.nan, -np.inf], 0.0)],
)
def test_ties_and_what_is_not_finite(logp, right):
  """The first of equal numbers counts; one that is not finite never wins."""
  options = [[(Option('a', '', True), [1]), (Option('b', '', False), [1])]]
  found = option_scores.accuracies(np.array([logp]), options)
  assert all(x.tolist() == [right] for x in found.values())


def test_options_that_do_not_fit(tiny, task):
  """File, row, column and limit are named, before anything is compiled."""
  with pytest.raises(
    OverlongPromptError,
    match=r"rows.jsonl:4\): option 0 of field 'options' has 6 tokens, .* 5 ",
  ):
    scores(task, tiny, limit=5)
  long = {'q': 'a' * 17, 'options': ['b', 'c'], 'right': 0}
  path = task.sources['test']
  with open(path, 'a') as file:
    file.write(json.dumps(long) + '\n')
  again = dataclasses.replace(task, sources={'test': path}, bad_rows='skip')
  with pytest.raises(OverlongPromptError, match='rows.jsonl:6.*prompt has 17'):
    scores(again, tiny)


def test_a_task_without_options():
  with pytest.raises(ValueError, match='rows of Bandit have no options'):
    OptionSet(Bandit(), 'test', TOKENIZER, 16, max_option_tokens=4)


def test_metrics_of_an_evaluation(tiny, task):
  """Accuracies, their intervals and averages, in the words of the set."""
  params = tiny.params()
  measured, _ = scores(task, tiny)
  settings = EvaluationConfig(
    split=None,
    sets=(EvaluationSet('sky', task=task, options=True, limit=4),),
    averages=(SetAverage('paper', ('sky/acc', 'sky/acc_per_byte')),),
    intervals=True,
  )
  protocols = {
    'sky': evaluation.Protocol(settings.by_name()['sky'], SamplingConfig(), 8)
  }
  evaluator = evaluation.Evaluator(
    None,
    {'sky': measured},
    None,
    protocols,
    settings,
    stop=make_stop(TOKENIZER),
  )
  metrics, rows = evaluator.run(params)
  right, _ = measured.run(params, 4)
  for name in OPTION_ACCURACIES:
    mean = right[name].mean()
    assert metrics[f'sky/{name}'] == mean
    assert metrics[f'sky/{name}_low'] <= mean <= metrics[f'sky/{name}_high']
    np.testing.assert_array_equal(rows[f'sky/{name}'], right[name])
  assert metrics['sky/n'] == 4
  both = metrics['sky/acc'] + metrics['sky/acc_per_byte']
  assert metrics['average/paper'] == both / 2
  assert rows['sky/option_logp'].shape == (4, 4)


def test_settings_of_options(task):
  """Nothing is drawn, whatever else is set; averages know the accuracies."""
  settings = EvaluationConfig(options=True, num_samples=4, split='test')
  (one,) = settings.by_name().values()
  assert not one.greedy and not one.num_samples
  assert one.accuracies() == OPTION_ACCURACIES
  mixed = EvaluationConfig(
    sets=(EvaluationSet('sky', task=task, options=True),), num_samples=2
  ).by_name()
  assert mixed[''].num_samples == 2 and mixed['sky'].num_samples == 0
  with pytest.raises(ValueError, match='sky.*acc_per_character'):
    EvaluationConfig(
      sets=(EvaluationSet('sky', task=task, options=True),),
      averages=(SetAverage('paper', ('sky/pass_at_1',)),),
    )
  assert config_lib.EvaluationConfig().options is False
