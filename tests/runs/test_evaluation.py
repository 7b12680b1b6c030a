"""Accuracy on a split; the model is replaced by a rule."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.config import EvaluationConfig
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.rollouts import engine, responses
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.verifiers import TextVerifier
from rl_jax.runs import evaluation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import Example
from rl_jax.verification.pool import VerifierPool

TOKENIZER = CharTokenizer('yne')
Y, N, E = TOKENIZER.encode('yne')
END = TOKENIZER.eos_ids[0]


@dataclasses.dataclass(frozen=True)
class Letters:
  """Five prompts; 'y' is right, 'e' raises."""

  reward_weights = {'outcome': 1.0}

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
    return {'outcome': float(response == 'y')}


def generate(params, traj, key, *, cfg, sampling, max_new_tokens, slots):
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


def run(monkeypatch, batch_prompts=128, num_prompts=5, num_samples=4):
  """Metrics and rows of an evaluation."""
  monkeypatch.setattr(engine, 'generate', generate)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  evaluator = evaluation.Evaluator(
    functools.partial(
      engine.make_engine, None, max_response_tokens=3, mesh=mesh
    ),
    PromptSet(Letters(), 'validation', TOKENIZER, 4),
    TextVerifier(VerifierPool(Letters())),
    EvaluationConfig(
      num_prompts=num_prompts,
      num_samples=num_samples,
      batch_prompts=batch_prompts,
    ),
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


def test_metrics_by_hand(monkeypatch):
  """Greedy: ids 0, 2, 4 of 5 right. Samples right of 4: 0, 1, 2, 3, 4.

  pass@2 = 1 - C(4 - c, 2) / 6: 0, 1/2, 5/6, 1, 1.
  """
  metrics, rows = run(monkeypatch)
  np.testing.assert_array_equal(rows['greedy'], [1, 0, 1, 0, 1])
  np.testing.assert_array_equal(rows['samples'].sum(1), [0, 1, 2, 3, 4])
  expected = {
    'pass_at_1': 0.6,
    'length': (3 * 2 + 2 * 3) / 5,
    'truncated_fraction': 0.4,
    'n': 5,
    'avg_at_4': 0.5,
    'entropy': 0.5,
    'sample_length': 2.5,
    'sample_truncated_fraction': 0.5,
    'pass_at_2': (0 + 1 / 2 + 5 / 6 + 1 + 1) / 5,
    'pass_at_4': 0.8,
  }
  assert metrics == pytest.approx(expected)


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
  assert metrics['n'] == 3 and set(rows) == {'greedy'}
  assert metrics['pass_at_1'] == pytest.approx(2 / 3)
  assert set(metrics) == {'pass_at_1', 'length', 'truncated_fraction', 'n'}


def test_the_token_that_ended_a_response_is_no_text():
  """Neither it (the end token or a stop text) nor what lies behind it."""
  host = {
    'response': np.array([[Y, N, END], [Y, END, N], [END, Y, Y], [Y, N, N]]),
    'length': np.array([3, 2, 1, 2]),
  }
  texts = responses.decode_responses(host, TOKENIZER, (END,))
  assert texts == ['yn', 'y', '', 'yn']
  texts = responses.decode_responses(host, TOKENIZER, (END, N))
  assert texts == ['yn', 'y', '', 'y']
