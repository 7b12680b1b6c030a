"""Methods that must coincide where their papers say so. All tier E1."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import replace_piece
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean, TokenMean


def push(toy, method, *, on_policy=False, **fields):
  """-dL/dlogp on the toy batch, the reward of the last row made finite."""
  traj, stats = toy.batch(method)
  traj = traj.replace(**fields)
  if on_policy:
    stats = {**stats, 'logp': traj.logp_old_BT}
  result = toy.run(
    method.as_arrays(),
    traj,
    stats,
    method.init_state(2),
    jax.random.key(0),
  )
  return -np.asarray(result['grads']['logp'])


def same(a, b):
  """Equal up to float32 rounding, and not trivially zero."""
  assert np.abs(b).max() > 0
  np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def with_aggregation(method, aggregation):
  """The method with another aggregation."""
  return dataclasses.replace(method, aggregation=aggregation)


def test_dapo_without_its_four_techniques_is_grpo_without_kl(toy):
  """Symmetric clip, row means, no filter needed, short responses."""
  dapo, grpo = toy.get_method('dapo'), toy.get_method('grpo')
  plain = dataclasses.replace(
    dapo,
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    group_filter=None,
  )
  without_kl = dataclasses.replace(grpo, losses=grpo.losses[:1])
  same(push(toy, plain), push(toy, without_kl))


def test_zero_kl_coefficient_is_no_kl(toy):
  """The penalty is exactly additive."""
  grpo = toy.get_method('grpo')
  zero = replace_piece(
    grpo, 'losses.1.KLPenalty', regularizers.KLPenalty(coef=0.0)
  )
  none = dataclasses.replace(grpo, losses=grpo.losses[:1])
  same(push(toy, zero), push(toy, none))


def test_rloo_is_scaled_dr_grpo_on_policy(toy):
  """G / (G - 1) times centring; sums over the constant 1; ratio 1. All rows
  are valid here, so G / (G - 1) = 4/3."""
  reward = {
    'reward_B': jnp.array([1.0, 0, 0, 1, 0, 1, 0, 0]),
    'valid_B': jnp.ones(8),
    'weight_B': jnp.ones(8),
  }
  dr_grpo = toy.get_method('dr_grpo')
  rloo = push(toy, toy.get_method('rloo'), on_policy=True, **reward)
  scaled = push(toy, dr_grpo, on_policy=True, **reward) * 1024
  same(rloo, 4 / 3 * scaled)


def test_ppo_without_values_is_whitened_reinforce(toy):
  """V = 0, gamma = lam = 1, no KL: every token carries the reward."""
  ppo = toy.get_method('ppo')
  monte_carlo = dataclasses.replace(
    ppo,
    shaping=(),
    credit=(credit.GAE(gamma=1.0, lam=1.0), credit.Whiten()),
  )
  reinforce = dataclasses.replace(
    toy.get_method('reinforce'),
    credit=(credit.Whiten(),),
    aggregation=TokenMean(),
  )
  same(
    push(toy, monte_carlo, on_policy=True, values_BT=jnp.zeros((8, 6))),
    push(toy, reinforce, on_policy=True),
  )


def test_grpo_with_equal_group_stds_is_a_multiple_of_dr_grpo(toy):
  """Both groups have rewards 1, 1, 0, 0: sample std 1 / sqrt(3)."""
  reward = {
    'reward_B': jnp.array([1.0, 0, 0, 1, 0, 1, 0, 1]),
    'valid_B': jnp.ones(8),
    'weight_B': jnp.ones(8),
  }
  grpo = toy.get_method('grpo')
  scaled = with_aggregation(
    dataclasses.replace(grpo, losses=grpo.losses[:1]), TokenMean()
  )
  centered = dataclasses.replace(scaled, credit=scaled.credit[:1])
  same(push(toy, scaled, **reward) / np.sqrt(3), push(toy, centered, **reward))


@pytest.mark.parametrize('name', ['clip_cov', 'kl_cov'])
def test_without_strength_the_covariance_methods_are_their_base(toy, name):
  """No eligible token, or coefficient 0: the surrogate without any clip (no
  toy ratio exceeds 2)."""
  method = toy.get_method(name)
  if name == 'clip_cov':
    off = dataclasses.replace(method.weights[0], low=90.0, high=99.0)
    weakened = dataclasses.replace(method, weights=(off,))
  else:
    weakened = dataclasses.replace(method, losses=(losses.KLCov(coef=0.0),))
  base = dataclasses.replace(
    method, weights=(), losses=(losses.PPOClip(clip_low=1.0, clip_high=1.0),)
  )
  same(push(toy, weakened), push(toy, base))


def test_ppo_clip_is_reinforce_on_policy(toy):
  """Ratio 1: only the score-function gradient is left."""
  clip = with_aggregation(toy.get_method('dapo'), TokenMean())
  score = dataclasses.replace(clip, losses=(losses.Reinforce(),))
  same(push(toy, clip, on_policy=True), push(toy, score, on_policy=True))
