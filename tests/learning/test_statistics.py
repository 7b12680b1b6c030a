"""Token statistics: against numpy, in chunks, in pieces, at a temperature."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.learning import score as score_lib
from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.models import params as params_lib
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.logits import TopK
from rl_jax.pieces.policies import Average
from rl_jax.pieces.statistics import Certainty, GroupDivergence, GroupProbs
from rl_jax.pieces.statistics.critic_value import CriticValue
from rl_jax.runtime.platform import Platform

NEEDS = ('entropy', 'values', Certainty(), GroupDivergence())


@pytest.fixture(scope='module')
def case(tiny):
  """(traj, its statistics, hidden states and logits [B, T, V])."""
  traj, params = tiny.rollout(), tiny.params()

  @jax.jit
  def compute(params, traj):
    stats = statistics.token_statistics(
      Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE),
      params,
      traj,
      (*NEEDS, 'hidden', 'value_heads', GroupProbs()),
    )
    hidden = models.forward(
      params,
      tiny.CFG,
      traj.prompt_NP,
      traj.prompt_mask_NP,
      traj.response_BT,
      traj.mask_BT,
    )
    return stats, hidden, models.logits(params, tiny.CFG, hidden)

  return traj, *jax.device_get(compute(params, traj))


def test_statistics_against_numpy(tiny, case):
  """Softmax at the temperature, written out in float64."""
  traj, stats, hidden, logits = case
  logits = np.float64(logits) / tiny.TEMPERATURE
  p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  token = np.asarray(traj.response_BT)[..., None]
  head = jax.device_get(tiny.params()['value_head'])
  mask = np.asarray(traj.mask_BT)
  V, N = tiny.CFG.vocab_size, traj.num_prompts
  # Rows that have ended are uniform.
  logp = np.where(mask[..., None] > 0, np.log(p), -np.log(V))
  logp = logp.reshape(N, -1, *logp.shape[1:])
  u = logp.mean(1, keepdims=True) - logp
  apart = (np.exp(u) - u - 1).sum(-1).mean(1)
  group_tokens = np.repeat(np.asarray(traj.response_BT).reshape(N, -1), 2, 0)
  expected = {
    'logp': np.log(np.take_along_axis(p, token, -1)[..., 0]),
    'entropy': -(p * np.log(p)).sum(-1),
    'self_certainty': -np.log(p * tiny.CFG.vocab_size).mean(-1),
    'values': hidden @ head['w'] + head['b'],
    'group_divergence': np.repeat(apart, traj.group_size, axis=0),
  }
  assert stats.keys() == {*expected, 'value_heads', 'hidden', 'group_probs'}
  np.testing.assert_allclose(
    stats['value_heads'], stats['values'][..., None], rtol=1e-6
  )
  assert np.ptp(stats['entropy'][mask > 0]) > 0.1  # nothing trivial
  for name, value in expected.items():
    np.testing.assert_allclose(
      stats[name], value * mask, rtol=2e-5, atol=2e-5, err_msg=name
    )
  np.testing.assert_array_equal(stats['hidden'], hidden * mask[..., None])
  probs = np.take_along_axis(p, group_tokens[:, None, :], axis=-1)
  np.testing.assert_allclose(
    stats['group_probs'], probs * mask[..., None], rtol=2e-5, atol=1e-7
  )


def test_masked_tokens_are_exactly_zero(case):
  """E0: the rule of every [B, T] array."""
  traj, stats, _, _ = case
  off = np.asarray(traj.mask_BT) == 0
  assert off.any()
  for name, value in stats.items():
    assert not value[off].any(), name


def test_chunks_change_nothing(tiny, monkeypatch):
  """E1: values and gradients with spans of 2 tokens, the last one padded."""
  traj, params = tiny.rollout(), tiny.params()
  weight_BT = jnp.asarray(
    np.random.default_rng(0).normal(size=traj.mask_BT.shape), jnp.float32
  )

  def compute():
    def loss(params):
      stats = statistics.token_statistics(
        Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE),
        params,
        traj,
        NEEDS,
      )
      return sum((x * weight_BT).sum() for x in stats.values()), stats

    return jax.jit(jax.grad(loss, has_aux=True))(params)

  whole, stats = compute()
  rows = traj.mask_BT.shape[0]
  monkeypatch.setattr(
    statistics, 'CHUNK_ELEMENTS', 2 * rows * tiny.CFG.vocab_size
  )
  spans, chunked_stats = compute()
  assert tiny.relative_gap(spans, whole) < 1e-5
  for name, value in stats.items():
    np.testing.assert_allclose(chunked_stats[name], value, atol=1e-5)


def test_chunks_are_of_equal_sizes(monkeypatch):
  """9 tokens in spans of at most 8: twice 5, not 8 and 1 with 7 of padding."""
  monkeypatch.setattr(statistics, 'CHUNK_ELEMENTS', 8 * 2 * 3)
  shapes = []

  def function(x_BC):
    shapes.append(x_BC.shape)
    return {'double': 2 * x_BC}

  x_BT = np.arange(18).reshape(2, 9)
  model = types.SimpleNamespace(vocab_size=3, platform=Platform())
  found = statistics._in_chunks(function, (x_BT,), model)
  np.testing.assert_array_equal(found['double'], 2 * x_BT)
  assert set(shapes) == {(2, 5)}


def test_no_array_holds_all_logits(tiny, monkeypatch):
  """The compiled gradient has no [B, T, V] array once chunks are used."""
  traj, params = tiny.rollout(length=6), tiny.params()
  B, T = traj.mask_BT.shape
  V = tiny.CFG.vocab_size
  monkeypatch.setattr(statistics, 'CHUNK_ELEMENTS', 2 * B * V)

  def loss(params):
    stats = statistics.token_statistics(
      Forward(model=tiny.CFG), params, traj, NEEDS
    )
    return sum(x.sum() for x in stats.values())

  text = str(jax.make_jaxpr(jax.grad(loss))(params))
  assert f'f32[{B},2,{V}]' in text
  assert f'f32[{B},{T},{V}]' not in text and f'f32[3,{B},2,{V}]' not in text


def test_the_sampling_temperature_is_replayed(tiny):
  """The trainer's log-prob is the sampler's within 1e-5, at 0.7 and not at 1.

  The invariant that every iteration watches as rollout/logp_gap_max.
  """
  params, traj = tiny.params(), tiny.rollout()
  start = decoding.start_trajectories(
    traj.prompt_NP,
    traj.prompt_mask_NP,
    traj.prompt_id_N,
    group_size=2,
    max_response_tokens=5,
  )

  @jax.jit
  def compute(params):
    drawn = decoding.generate(
      params,
      tiny.CFG,
      start,
      jax.random.key(1),
      decoding.SamplingConfig(temperature=tiny.TEMPERATURE, eos_ids=(2,)),
      max_new_tokens=5,
    )
    logp = [
      statistics.token_statistics(
        Forward(model=tiny.CFG, temperature=t), params, drawn, ()
      )['logp']
      for t in (tiny.TEMPERATURE, 1.0)
    ]
    return drawn.logp_behaviour_BT, *logp

  behaviour, same, other = compute(params)
  np.testing.assert_allclose(same, behaviour, atol=1e-5)
  assert np.abs(other - behaviour).max() > 0.1


def test_logits_transforms_are_replayed(tiny):
  """Top 3 of 11 and the token taken, which rounding may have put outside:
  entropy at most log 4, all finite although logits are -inf."""
  traj = tiny.rollout()
  stats = jax.jit(
    lambda params: statistics.token_statistics(
      Forward(model=tiny.CFG),
      params,
      traj,
      ('entropy',),
      (TopK(k=3),),
    )
  )(tiny.params())
  entropy = stats['entropy'][traj.mask_BT > 0]
  assert jnp.isfinite(entropy).all() and (entropy > 0).all()
  assert entropy.max() <= np.log(4) + 1e-5
  assert jnp.isfinite(stats['logp']).all()


@pytest.mark.parametrize('capacity', [None, 9])
def test_values_behind_a_token_have_read_it(tiny, capacity):
  """E1: as the values before the next token; after the last one, too."""
  traj, params = tiny.rollout(), tiny.params()
  forward = Forward(model=tiny.CFG)
  next_token = traj.replace(
    response_BT=jnp.pad(traj.response_BT, ((0, 0), (0, 1))),
    kind_BT=jnp.pad(traj.kind_BT, ((0, 0), (1, 0)), constant_values=1),
    mask_BT=jnp.pad(traj.mask_BT, ((0, 0), (1, 0)), constant_values=1),
  )
  compute = jax.jit(statistics.token_statistics, static_argnums=(0, 3))
  expected = compute(forward, params, next_token, ('values',))['values'][:, 1:]
  packed = dataclasses.replace(forward, capacity=capacity)
  found = compute(packed, params, traj, ('values', 'values_after'))
  np.testing.assert_allclose(
    found['values_after'], expected * traj.mask_BT, atol=1e-5
  )
  before = compute(forward, params, traj, ('values',))
  np.testing.assert_allclose(found['values'], before['values'], atol=1e-5)
  assert np.ptp(expected) > 0.1


def test_values_behind_tokens(tiny):
  """E1: those before the next token; several heads have the first one first."""
  traj = tiny.rollout()
  needs = ('values', 'values_after', 'value_heads_after')
  forward = statistics.Forward(model=tiny.CFG)
  stats = jax.device_get(
    statistics.token_statistics(forward, tiny.params(), traj, needs)
  )
  after = stats['values_after']
  np.testing.assert_allclose(
    stats['value_heads_after'], after[..., None], rtol=1e-6
  )
  both = (traj.mask_BT[:, 1:] * traj.mask_BT[:, :-1]) > 0
  assert both.any()
  np.testing.assert_allclose(
    after[:, :-1][both], stats['values'][:, 1:][both], rtol=1e-5, atol=1e-6
  )


@pytest.mark.parametrize('critic', ['shared', 'own'])
def test_values_of_another_critic(tiny, critic):
  """E1: all heads of a policy's copy, as if it were scored; in parts, too."""
  model = dataclasses.replace(tiny.CFG, num_values=2, critic=critic)
  params, copy = (
    params_lib.init_params(model, jax.random.key(seed)) for seed in (0, 1)
  )
  head = np.random.default_rng(0).normal(size=(2, model.width))
  copy['value_head']['w'] = jnp.asarray(head, jnp.float32)
  traj = tiny.rollout()
  needs = (CriticValue('slow', 1), CriticValue('slow', 0, after=True))
  params = {**params, 'policies': {'slow': copy}}
  read = jax.jit(statistics.critic_values, static_argnums=(0, 3))
  found = read(Forward(model=model), params, traj, (*needs, 'entropy'))
  heads = ('value_heads', 'value_heads_after')
  score = jax.jit(statistics.token_statistics, static_argnums=(0, 3))
  expected = score(Forward(model=model), copy, traj, heads)
  assert set(found) == {'value_1_before_slow', 'value_0_after_slow'}
  before, after = (expected[name] for name in heads)
  for name, value_BT in (
    ('value_1_before_slow', before[..., 1]),
    ('value_0_after_slow', after[..., 0]),
  ):
    np.testing.assert_allclose(found[name], value_BT, atol=1e-5)
    assert np.abs(found[name]).max() > 0.1
  parts = Forward(model=model, microbatches=traj.num_prompts)
  again = read(parts, params, traj, needs)
  for name, value_BT in found.items():
    np.testing.assert_allclose(again[name], value_BT, atol=1e-5)


def test_slow_critics_are_scored_with_the_rollout(tiny):
  """Targets read them from extras."""
  model = dataclasses.replace(tiny.CFG, num_values=4)
  params, copy = (
    params_lib.init_params(model, jax.random.key(seed)) for seed in (0, 1)
  )
  method = Method(
    losses=(losses.Reinforce(), losses.TwinCritics()),
    value_target=credit.TwinTargets(decay=0.5),
    aggregation=TokenMean(),
  )
  assert method.policies() == {'slow_critics': Average(decay=0.5)}
  params = {**params, 'policies': {'slow_critics': copy}}
  score = jax.jit(score_lib.score, static_argnums=0)
  forward = Forward(model=model)
  traj, _ = score(forward, params, tiny.rollout(), method.as_arrays())
  for need in method.value_target.needs[2:]:
    assert traj.extras[need.name].shape == traj.mask_BT.shape
