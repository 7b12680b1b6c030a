"""Accuracy on a split; the model is replaced by a rule."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import (
  EvaluationConfig,
  evaluated_tokens,
  evaluations,
  most_evaluated_tokens,
)
from rl_jax.decoding import engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.judging.judges import Asked, Judges
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.measures import by_problem
from rl_jax.models.judge_source import Judge
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.overrides import override
from rl_jax.pieces.logits import MinP, TopK, TopP
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import evaluation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import EvaluationSet, SetAverage
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


def make_engine(sampling, group_size, beams, tokens):
  """Engines whose `generate` the tests replace."""
  config = engine.EngineConfig(group_size, tokens, beams=beams)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  return engine.make_engine(None, sampling, config, mesh)


def make(tasks, settings, make_one=make_engine, **more):
  """An evaluator of tasks by the names of their sets."""
  protocols = {
    name: evaluation.Protocol(
      settings=one,
      sampling=SamplingConfig(temperature=one.temperature or 1.0),
      tokens=3,
    )
    for name, one in settings.by_name().items()
  }
  return evaluation.Evaluator(
    make_one,
    {
      name: PromptSet(task, 'validation', TOKENIZER, 4)
      for name, task in tasks.items()
    },
    TextVerifier(VerifierPool(Letters(), 0)),
    protocols,
    settings,
    stop=make_stop(TOKENIZER),
    **more,
  )


def run(monkeypatch, batch_prompts=128, num_prompts=5, num_samples=4, **more):
  """Metrics and rows of an evaluation."""
  monkeypatch.setattr(engine, 'generate', generate)
  names = {'judges', 'seed'} & set(more)
  settings = EvaluationConfig(
    num_prompts=num_prompts,
    num_samples=num_samples,
    batch_prompts=batch_prompts,
    **{name: x for name, x in more.items() if name not in names},
  )
  more = {name: more[name] for name in names}
  return make({'': Letters()}, settings, **more).run(None)


def test_pass_at_k_is_the_mean_over_all_subsets():
  """Every subset of k of n samples, counted out."""
  for n, c in [(4, 0), (4, 1), (5, 2), (4, 4)]:
    for k in range(1, n + 1):
      right = [i < c for i in range(n)]
      hits = [any(s) for s in itertools.combinations(right, k)]
      np.testing.assert_allclose(by_problem.pass_at_k(n, c, k), np.mean(hits))
  for k in (0, 5):
    with pytest.raises(ValueError, match=rf'k = {k} is outside \[1, 4\]'):
      by_problem.pass_at_k(4, 1, k)


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
  np.testing.assert_array_equal(rows['questions'], ['n'] * 5)
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
  assert metrics['n'] == 3 and set(rows) == {'greedy', 'responses', 'questions'}
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
  settings = EvaluationConfig(
    num_prompts=4,
    num_samples=2,
    batch_prompts=3,
    sets=(EvaluationSet('other'),),
  )
  evaluator = make({'': Parts(), 'other': Letters()}, settings)
  metrics, rows = evaluator.run(None)
  assert metrics['pass_at_1'] == metrics['other/pass_at_1'] == 2 / 3
  assert (metrics['a/pass_at_1'], metrics['b/pass_at_1']) == (1.0, 0.0)
  assert metrics['a/n'] == metrics['b/n'] == 2 and metrics['n'] == 4
  np.testing.assert_array_equal(rows['other/greedy'], [1, 0, 1, np.nan])
  assert metrics['b/reward_errors'] == metrics['reward_errors'] == 1
  # Sample g is right where g < id: of ids 0 and 2 none and both.
  assert metrics['a/avg_at_2'] == 0.5 and metrics['b/avg_at_2'] == 0.75


def counted_engines():
  """(make, calls): engines, and what each was made of."""
  calls = []

  def make_one(sampling, rows, beams, tokens):
    calls.append((sampling.greedy, float(sampling.temperature), rows))
    return make_engine(sampling, rows, beams, tokens)

  return make_one, calls


SETS = (
  EvaluationSet('aime', num_samples=4, temperature=0.6, greedy=False),
  EvaluationSet('amc', num_samples=4, temperature=0.6, greedy=False, limit=3),
  EvaluationSet('math'),
)


def test_each_set_has_its_own_protocol(monkeypatch):
  """Samples of two sets, greedy responses of the third and of the split.

  E0: the numbers of a set are those of an evaluation that has its settings.
  Sets of equal settings share an engine: two are made for four sets.
  """
  monkeypatch.setattr(engine, 'generate', generate)
  average = SetAverage(
    'paper', ('aime/avg_at_4', 'amc/avg_at_4', 'math/pass_at_1')
  )
  settings = EvaluationConfig(num_prompts=5, sets=SETS, averages=(average,))
  make_one, calls = counted_engines()
  names = ('', *(one.name for one in SETS))
  found, rows = make(dict.fromkeys(names, Letters()), settings, make_one).run(
    None
  )
  assert sorted(calls) == [(False, 0.6, 4), (True, 1.0, 1)]
  assert {name for name in found if name.startswith('aime/pass_at')} == {
    'aime/pass_at_2',
    'aime/pass_at_4',
  }
  assert found['aime/avg_at_4'] == 0.5  # samples right of 4: 0 to 4
  assert found['amc/avg_at_4'] == 0.25 and found['amc/n'] == 3
  assert found['math/pass_at_1'] == found['pass_at_1'] == 0.75
  assert found['average/paper'] == pytest.approx((0.5 + 0.25 + 0.75) / 3)
  assert 'avg_at_4' not in found and 'math/avg_at_4' not in found
  assert rows['amc/samples'].shape == (3, 4) and 'aime/greedy' not in rows
  alone, _ = run(monkeypatch, num_prompts=3)
  assert alone['avg_at_4'] == found['amc/avg_at_4']
  assert alone['pass_at_2'] == found['amc/pass_at_2']


def test_sets_of_other_temperatures_have_other_engines(monkeypatch):
  monkeypatch.setattr(engine, 'generate', generate)
  sets = (
    EvaluationSet('a', num_samples=2, temperature=0.6),
    EvaluationSet('b', num_samples=2, temperature=1.0),
    EvaluationSet('c', num_samples=8, temperature=1.0),
  )
  make_one, calls = counted_engines()
  settings = EvaluationConfig(split=None, sets=sets)
  make(dict.fromkeys('abc', Letters()), settings, make_one)
  assert sorted(calls) == [
    (False, 0.6, 2),
    (False, 1.0, 2),
    (False, 1.0, 8),
    (True, 1.0, 1),
  ]


def test_settings_of_sets_reach_tokens_sampling_and_checks(toy):
  """Settings that a set leaves open are of `evaluation`, then the rollout."""
  config = bandit.get_config(toy.get_method('grpo'))
  sets = (
    EvaluationSet('long', max_response_tokens=99, temperature=0.6, top_p=0.95),
    EvaluationSet('rest'),
  )
  own = EvaluationConfig(temperature=0.5, max_response_tokens=7, sets=sets)
  config = dataclasses.replace(config, evaluation=own)
  each = evaluations(config)
  assert list(each) == ['', 'long', 'rest']
  tokens = {name: evaluated_tokens(one) for name, one in each.items()}
  assert tokens == {'': 7, 'long': 99, 'rest': 7}
  assert most_evaluated_tokens(config) == 99
  found = {name: evaluation.sampling_of(one) for name, one in each.items()}
  assert found['long'].temperature == 0.6
  assert found['long'].transforms == (TopP(p=0.95),)
  assert found['rest'].temperature == found[''].temperature == 0.5


def test_intervals_are_over_problems(monkeypatch):
  """By hand: t(4) = 2.7764; means of problems 0, 1/4, 1/2, 3/4, 1."""
  found, _ = run(monkeypatch, intervals=True)
  half = 2.7764451 * np.std([0, 1, 2, 3, 4], ddof=1) / 4 / np.sqrt(5)
  assert found['avg_at_4_low'] == pytest.approx(0.5 - half)
  assert found['avg_at_4_high'] == pytest.approx(0.5 + half)
  assert found['pass_at_1_low'] < 0.75 < found['pass_at_1_high'] == 1.0
  assert {f'pass_at_{j}_{end}' for j in (2, 4) for end in ('low', 'high')} <= (
    set(found)
  )


def test_interval_of_equal_problems_is_not_empty():
  """Clopper and Pearson: of 30 right ones the low end is 0.025^(1/30)."""
  low, high = by_problem.interval(np.ones(30))
  assert high == 1.0 and low == pytest.approx(0.025 ** (1 / 30))
  assert by_problem.interval(np.zeros(30)) == (0.0, pytest.approx(1 - low))
  assert np.isnan(by_problem.interval(np.ones(1))).all()
  # Equal values between: they are means of samples, and agree.
  assert by_problem.interval(np.full(3, 0.5)) == (0.5, 0.5)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    (dict(greedy=False), 'nothing to measure'),
    (
      dict(sets=(EvaluationSet('a', greedy=False),)),
      "set 'a' has greedy = False",
    ),
    (
      dict(averages=(SetAverage('m', ('b/pass_at_1',)),)),
      "no set has the name 'b'",
    ),
    (
      dict(averages=(SetAverage('m', ('avg_at_32',)),), num_samples=16),
      "'' has pass_at_1, avg_at_16, pass_at_2",
    ),
    (
      dict(averages=(SetAverage('m', ('pass_at_1',)),) * 2),
      'evaluation.averages: names occur twice',
    ),
    (dict(averages=(5,)), 'is not a SetAverage'),
    (
      dict(
        sets=(EvaluationSet('a'), EvaluationSet('b', greedy=False)),
        num_samples=2,
        consensus=('a', 'b'),
      ),
      "'b' has greedy = False",
    ),
    (dict(sets=(EvaluationSet('a'), EvaluationSet('a'))), 'occur twice'),
    (dict(split=None), 'evaluation.split = None'),
  ],
)
def test_bad_settings_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    EvaluationConfig(**fields)
