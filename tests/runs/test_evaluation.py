"""Accuracy on a split; the model is replaced by a rule."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import EvaluationConfig, evaluated_tokens
from rl_jax.decoding import engine
from rl_jax.judging.judges import Asked, Judges
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.models.judge_source import Judge
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.overrides import override
from rl_jax.pieces.logits import MinP, TopK, TopP
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import evaluation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import EvaluationSet
from rl_jax.tasks.base import Example, Task
from rl_jax.verification.pool import VerifierPool

TOKENIZER = CharTokenizer('yne')
Y, N, E = TOKENIZER.encode('yne')
END = TOKENIZER.eos_ids[0]


@dataclasses.dataclass(frozen=True)
class Letters(Task):
  """Five prompts; 'y' is right, 'e' raises."""

  reward_weights = {'outcome': 2.0, 'letters': 0.25}

  def num_prompts(self, split):
    """Five."""
    return 5

  def example(self, split, index):
    """All alike but for the id."""
    return Example(prompt='n', answer='y', id=index)

  def reward(self, example, response):
    """Exact match."""
    if response == 'e':
      raise KeyError('a bug')
    return {'outcome': float(response == 'y'), 'letters': len(response)}


def generate(params, traj, key, *, sampling, max_new_tokens, **unused):
  """Greedy: right for even ids, raises for 3. Sample g: right if g < id.

  Right rows end by themselves after 2 tokens, the others run to the limit 3.
  """
  ids_B = jnp.repeat(traj.prompt_id_N, traj.group_size)
  right_B = traj.row_id_B2[:, 1] < ids_B
  wrong = N
  if sampling.greedy:
    right_B = ids_B % 2 == 0
    wrong = jnp.where(ids_B == 3, E, N)
  first_B = jnp.where(right_B, Y, wrong)
  length_B = jnp.where(right_B, 2, 3)
  third_B = jnp.where(right_B, 0, END)
  second_B = jnp.full_like(first_B, END)
  on = jnp.arange(max_new_tokens)[None, :] < length_B[:, None]
  return traj.replace(
    response_BT=jnp.stack([first_B, second_B, third_B], 1),
    length_B=length_B,
    finished_B=right_B,
    logp_behaviour_BT=jnp.where(on, -0.5, 0.0),
  )


def make_engine(sampling, group_size, beams):
  """Engines of three tokens, whose `generate` the tests replace."""
  config = engine.EngineConfig(group_size, max_response_tokens=3, beams=beams)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  return engine.make_engine(None, sampling, config, mesh)


def run(monkeypatch, batch_prompts=128, num_prompts=5, num_samples=4, **more):
  """Metrics and rows of an evaluation."""
  monkeypatch.setattr(engine, 'generate', generate)
  evaluator = evaluation.Evaluator(
    make_engine,
    PromptSet(Letters(), 'validation', TOKENIZER, 4),
    TextVerifier(VerifierPool(Letters(), 0)),
    EvaluationConfig(
      num_prompts=num_prompts,
      num_samples=num_samples,
      batch_prompts=batch_prompts,
    ),
    **more,
  )
  return evaluator.run(None)


def test_pass_at_k_is_the_mean_over_all_subsets():
  """Every subset of k of n samples, counted out."""
  for n, c in [(4, 0), (4, 1), (5, 2), (4, 4)]:
    for k in range(1, n + 1):
      right = [i < c for i in range(n)]
      hits = [any(s) for s in itertools.combinations(right, k)]
      np.testing.assert_allclose(evaluation.pass_at_k(n, c, k), np.mean(hits))
  for k in (0, 5):
    with pytest.raises(ValueError, match=rf'k = {k} is outside \[1, 4\]'):
      evaluation.pass_at_k(4, 1, k)


def test_judges_add_their_components(monkeypatch):
  """By hand: 2 outcome + letters / 4 + 3 judge; a failed call stays failed.

  The judge says 1 of 'y', 0 of 'n': what the outcome is.
  """
  source = Judge(name='j', weight=3.0, template='{response}')

  def read(params, ids):
    return [float(x == ['y']) for x in ids]

  judges = Judges([Asked(source, None, lambda q: list(q.text), read)])
  metrics, _ = run(monkeypatch, batch_prompts=2, judges=judges)
  assert metrics['reward/j'] == metrics['pass_at_1'] == 0.75
  assert metrics['reward/mean'] == 0.75 * (2 + 3) + 0.25
  assert metrics['sample_reward/j'] == 0.5
  assert metrics['reward_errors'] == 1


def test_metrics_by_hand(monkeypatch):
  """Greedy: ids 0, 2, 4 of 4 judged ones right. Samples right of 4: 0 to 4.

  pass@2 = 1 - C(4 - c, 2) / 6: 0, 1/2, 5/6, 1, 1.
  """
  metrics, rows = run(monkeypatch)
  np.testing.assert_array_equal(rows['greedy'], [1, 0, 1, np.nan, 1])
  np.testing.assert_array_equal(rows['samples'].sum(1), [0, 1, 2, 3, 4])
  expected = {
    'pass_at_1': 0.75,
    'reward/mean': 0.75 * 2 + 0.25,  # letters of 1, 1, 1 and 1
    'reward/outcome': 0.75,
    'reward/letters': 1.0,
    'length': (3 * 2 + 2 * 3) / 5,
    'truncated_fraction': 0.4,
    'n': 5,
    'reward_errors': 1,
    'avg_at_4': 0.5,
    'sample_reward/mean': 0.5 * 2 + 0.25,
    'sample_reward/outcome': 0.5,
    'sample_reward/letters': 1.0,
    'entropy': 0.5,
    'sample_length': 2.5,
    'sample_truncated_fraction': 0.5,
    'pass_at_2': (0 + 1 / 2 + 5 / 6 + 1 + 1) / 5,
    'pass_at_4': 0.8,
  }
  assert metrics == pytest.approx(expected)


def test_entropy_is_of_drawn_tokens():
  """Two of eight tokens of each row, the others are of environments."""

  def of(x):
    return np.full((2, 3), x)

  samples = {
    'reward/outcome': of(1.0),
    'finished': of(1.0),
    'length': of(8.0),
    'sampled': of(2.0),
    'logp': of(-3.0),
  }
  greedy = {name: x[:, :1] for name, x in samples.items()}
  assert evaluation.evaluation_metrics(greedy, samples)['entropy'] == 1.5


@pytest.mark.parametrize('array', [np.asarray, jnp.asarray])
def test_parts_of_outcomes_do_not_add_up_to_a_right_one(array):
  """None, one and both of two are above 1/2; the mean has the parts."""
  outcome = array([[0.5, 0.5], [-1.0, 1.0], [0.6, 0.75]])
  greedy = {name: outcome[:, :1] for name in ('length', 'finished')}
  greedy['reward/outcome'] = outcome[:, :1]
  rest = {'finished': outcome, 'length': outcome, 'logp': outcome}
  samples = {'reward/outcome': outcome, 'sampled': outcome, **rest}
  metrics = evaluation.evaluation_metrics(greedy, samples)
  assert metrics['pass_at_2'] == pytest.approx(2 / 3)
  assert metrics['avg_at_2'] == pytest.approx(2.35 / 6)


def test_what_was_not_judged_is_in_no_mean():
  """3 of 4 samples of the first prompt: pass@2 = 1 - C(2, 2) / C(3, 2)."""
  nan = np.nan
  names = 'length', 'finished', 'sampled', 'logp'
  rest = {name: np.ones((2, 4)) for name in names}
  reward = np.array([[1.0, 0.0, nan, 0.0], [1.0, 1.0, 1.0, 1.0]])
  greedy = {'reward/outcome': np.array([[nan], [0.0]])}
  greedy |= {name: x[:, :1] for name, x in rest.items()}
  samples = {'reward/outcome': reward, **rest}
  metrics = evaluation.evaluation_metrics(greedy, samples)
  assert metrics['pass_at_1'] == 0.0 and metrics['reward_errors'] == 2
  assert metrics['avg_at_4'] == pytest.approx(5 / 7)
  assert metrics['pass_at_2'] == pytest.approx((2 / 3 + 1) / 2)
  assert metrics['pass_at_4'] == 1.0  # of the second prompt only
  none = {**greedy, 'reward/outcome': np.full((2, 1), nan)}
  assert np.isnan(evaluation.evaluation_metrics(none, None)['pass_at_1'])


def test_sampling_is_that_of_the_rollout_unless_it_has_its_own(toy):
  """Temperature, transforms of the method, limit; greedy ignores the first."""
  method = toy.get_method('grpo').replace(logits=(MinP(p=0.1),))
  config = bandit.get_config(method)
  config = override(config, 'rollout.temperature', '0.7')
  found = evaluation.sampling_of(config)
  assert found.temperature == 0.7 and found.transforms == (MinP(p=0.1),)
  assert evaluated_tokens(config) == config.rollout.max_response_tokens
  for path, text in (
    ('temperature', '0.2'),
    ('top_k', '5'),
    ('top_p', '0.9'),
    ('max_response_tokens', '7'),
  ):
    config = override(config, f'evaluation.{path}', text)
  found = evaluation.sampling_of(config)
  assert found.temperature == 0.2
  assert found.transforms == (TopK(k=5), TopP(p=0.9))
  assert evaluated_tokens(config) == 7
  config = override(config, 'evaluation.top_k', 'null')
  config = override(config, 'evaluation.top_p', '1.0')
  assert evaluation.sampling_of(config).transforms == ()


def test_the_last_batch_is_padded_but_not_counted(monkeypatch):
  """E0: batches of 2 and of 128 prompts give the same numbers."""
  few, few_rows = run(monkeypatch, batch_prompts=2)
  many, many_rows = run(monkeypatch)
  assert few == many
  for name in many_rows:
    np.testing.assert_array_equal(few_rows[name], many_rows[name])


def test_fewer_prompts_and_no_samples(monkeypatch):
  """Only greedy numbers, over the first ones."""
  metrics, rows = run(monkeypatch, num_prompts=3, num_samples=0)
  assert metrics['n'] == 3 and set(rows) == {'greedy', 'responses'}
  assert metrics['pass_at_1'] == pytest.approx(2 / 3)
  names = {'pass_at_1', 'length', 'truncated_fraction', 'n', 'reward_errors'}
  names |= {f'reward/{name}' for name in ('mean', 'outcome', 'letters')}
  assert set(metrics) == names


@dataclasses.dataclass(frozen=True)
class Parts(Letters):
  """Ids 0, 2, 4 are of part a, the others of part b."""

  def example(self, split, index):
    found = super().example(split, index)
    return dataclasses.replace(found, meta={'mixture_part': 'ab'[index % 2]})


def test_sets_and_parts_have_metrics_of_their_own(monkeypatch):
  """Ids 0, 2, 4 are right: all of part a; of b 1 is wrong, 3 not judged."""
  monkeypatch.setattr(engine, 'generate', generate)

  def make(task):
    return PromptSet(task, 'validation', TOKENIZER, 4)

  evaluator = evaluation.Evaluator(
    make_engine,
    {'': make(Parts()), 'other': make(Letters())},
    TextVerifier(VerifierPool(Letters(), 0)),
    EvaluationConfig(num_prompts=4, num_samples=2, batch_prompts=3),
  )
  metrics, rows = evaluator.run(None)
  assert metrics['pass_at_1'] == metrics['other/pass_at_1'] == 2 / 3
  assert (metrics['a/pass_at_1'], metrics['b/pass_at_1']) == (1.0, 0.0)
  assert metrics['a/n'] == metrics['b/n'] == 2 and metrics['n'] == 4
  np.testing.assert_array_equal(rows['other/greedy'], [1, 0, 1, np.nan])
  assert metrics['b/reward_errors'] == metrics['reward_errors'] == 1
  # Sample g is right where g < id: of ids 0 and 2 none and both.
  assert metrics['a/avg_at_2'] == 0.5 and metrics['b/avg_at_2'] == 0.75


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    (dict(sets=(EvaluationSet('a'), EvaluationSet('a'))), 'occur twice'),
    (dict(split=None), 'evaluation.split = None'),
  ],
)
def test_bad_settings_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    EvaluationConfig(**fields)
