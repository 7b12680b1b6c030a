"""Ratio, mismatch and sequence-score methods against simpler ones. Tier E1.

The same toy batch as in the table of all methods, with all rows valid and two
rewarded rows in the first group, two or one in the second.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import (
  SeqMeanTokenMean,
  SeqMeanTokenSum,
  TokenMean,
)

UNEQUAL = jnp.array([1.0, 0, 0, 1, 0, 1, 0, 0])
EQUAL = jnp.array([1.0, 0, 0, 1, 0, 1, 0, 1])  # equal group deviations


def push(toy, method, *, on_policy=False, reward=UNEQUAL, **fields):
  """-dL/dlogp on the toy batch."""
  traj, stats = toy.batch(method)
  traj = traj.replace(
    reward_B=reward, valid_B=jnp.ones(8), weight_B=jnp.ones(8), **fields
  )
  if on_policy:
    stats = {**stats, 'logp': traj.logp_old_BT}
  state = method.init_state(2)
  result = toy.run(method.as_arrays(), traj, stats, state, jax.random.key(0))
  return -np.asarray(result['grads']['logp'])


def same(a, b, rtol=2e-5):
  """Equal up to float32 rounding, and not trivially zero."""
  assert np.abs(b).max() > 0
  np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-7)


def grpo(toy, aggregation, **credit_fields):
  """GRPO without KL, with another aggregation."""
  method = toy.get_method('grpo')
  return dataclasses.replace(
    method,
    credit=(credit.GroupCenter(), credit.GroupScale(**credit_fields)),
    losses=method.losses[:1],
    aggregation=aggregation,
  )


def with_loss(method, *pieces, **fields):
  """The method with other losses."""
  return dataclasses.replace(method, losses=pieces, **fields)


@pytest.mark.parametrize(
  'name, aggregation',
  [
    ('gspo', SeqMeanTokenMean()),
    ('gmpo', SeqMeanTokenMean()),
    ('sapo', SeqMeanTokenMean()),
    ('luspo', SeqMeanTokenSum()),
    ('vespo', SeqMeanTokenSum()),
    ('cispo', TokenMean()),
    ('minpro', TokenMean()),
    ('dppo_tv', TokenMean()),
    ('dppo_kl', TokenMean()),
    ('clip_higher', TokenMean()),
    ('dual_clip_grpo', TokenMean()),
  ],
)
def test_on_policy_it_is_grpo(toy, name, aggregation):
  """At ratio 1 only the score-function gradient with GRPO's A is left."""
  base = grpo(toy, aggregation)
  score = with_loss(base, losses.Reinforce())
  actual = push(toy, toy.get_method(name), on_policy=True)
  same(actual, push(toy, base, on_policy=True))
  same(actual, push(toy, score, on_policy=True))


def test_nft_is_dr_grpo_and_grpo_on_policy(toy):
  """normalize 1 and 2; both over a constant of 1000 tokens."""
  nft = toy.get_method('nft')
  aggregation = nft.aggregation
  dr_grpo = dataclasses.replace(
    toy.get_method('dr_grpo'), aggregation=aggregation
  )
  same(push(toy, nft, on_policy=True), push(toy, dr_grpo, on_policy=True))
  scaled = with_loss(nft, losses.NFT(normalize=2))
  same(
    push(toy, scaled, on_policy=True),
    push(toy, grpo(toy, aggregation, ddof=0, eps=1e-9), on_policy=True),
  )


def rloo_with_kl(toy, coef):
  """RLOO with the sequence KL in the reward."""
  return dataclasses.replace(
    toy.get_method('rloo'),
    shaping=(shaping.KLInReward(coef=coef, level='sequence'),),
  )


def test_copg_is_rloo_on_policy(toy):
  """2 coef times, and a mean over 2 groups instead of over 8 rows."""
  copg = toy.get_method('copg')
  rloo = push(toy, rloo_with_kl(toy, 0.1), on_policy=True)
  same(push(toy, copg, on_policy=True), 2 * 0.1 * 4 * rloo, rtol=1e-4)


@pytest.mark.parametrize('name', ['p3o_v1', 'p3o_v2'])
def test_p3o_is_rloo_on_policy(toy, name):
  """For groups of any size, with all pairs."""
  actual = push(toy, toy.get_method(name), on_policy=True)
  same(actual, push(toy, rloo_with_kl(toy, 0.1), on_policy=True), rtol=1e-4)


def test_topr_is_reinforce_on_policy(toy):
  """With rewards -1 and +1."""
  topr = toy.get_method('topr')
  reinforce = with_loss(topr, losses.Reinforce())
  same(push(toy, topr, on_policy=True), push(toy, reinforce, on_policy=True))


def test_disco_b_is_disco_with_a_large_temperature(toy):
  """tau to infinity: the soft maximum becomes the mean."""
  disco_b = toy.get_method('disco_b')
  hot = with_loss(disco_b, losses.DisCO(tau=1e4), disco_b.losses[1])
  same(push(toy, hot), push(toy, disco_b), rtol=1e-3)


def test_lite_ppo_is_grpo_with_equal_group_deviations(toy):
  """Batch std of 8 rewards sqrt(8/7) / 2, group std of 4 1 / sqrt(3)."""
  base = grpo(toy, TokenMean())
  ratio = np.sqrt(8 / 7) / 2 * np.sqrt(3)
  actual = push(toy, toy.get_method('lite_ppo'), reward=EQUAL)
  same(actual * ratio, push(toy, base, reward=EQUAL))


@pytest.mark.parametrize(
  'name', ['tis', 'tis_sequence', 'icepop', 'seq_mask_tis', 'k3_rejection']
)
def test_without_mismatch_the_weights_are_one(toy, name):
  """The toy sampler is the old policy."""
  same(push(toy, toy.get_method(name)), push(toy, grpo(toy, TokenMean())))


def test_llds_without_strength_is_grpo(toy):
  """coef 0, and coef .2 before the first update."""
  llds = toy.get_method('llds')
  clip, _, kl = llds.losses
  base = with_loss(llds, clip, kl)
  off = with_loss(llds, clip, regularizers.LLDS(coef=0.0), kl)
  same(push(toy, off), push(toy, base))
  same(push(toy, llds, on_policy=True), push(toy, base, on_policy=True))
  assert np.abs(push(toy, llds) - push(toy, base)).max() > 1e-3


def test_all_tokens_are_the_upper_quantile_of_one(toy):
  """fraction 1 drops nothing: clip-higher."""
  method = toy.get_method('entropy_quantile')
  everything = dataclasses.replace(method.weights[0], fraction=1.0)
  full = dataclasses.replace(method, weights=(everything,))
  same(push(toy, full), push(toy, toy.get_method('clip_higher')))


def test_reinforce_plus_plus_without_kl_is_whitened_reinforce(toy):
  """gamma 1: every token carries the outcome. The baseline variant adds the
  group mean."""
  method = toy.get_method('reinforce_plus_plus')
  plain = dataclasses.replace(method, shaping=())
  whitened = dataclasses.replace(plain, credit=(credit.Whiten(),))
  same(push(toy, plain), push(toy, whitened))
  centered = dataclasses.replace(
    whitened, credit=(credit.GroupCenter(), credit.Whiten())
  )
  baseline = toy.get_method('reinforce_plus_plus_baseline')
  same(push(toy, baseline), push(toy, centered))


def test_gpg_is_scaled_centred_reinforce(toy):
  """Three of eight rewards are not 0."""
  gpg = toy.get_method('gpg')
  centered = dataclasses.replace(gpg, credit=(credit.GroupCenter(),))
  same(push(toy, gpg), 8 / 3 * push(toy, centered))


def test_gdc_from_the_reference_is_reinforce(toy):
  """pi_ref = pi_old: the weight is the reward."""
  gdc = toy.get_method('gdc')
  traj, _ = toy.batch(gdc)
  actual = push(toy, gdc, logp_ref_BT=traj.logp_old_BT)
  same(actual, push(toy, toy.get_method('reinforce')))


def test_dro_without_a_pull_is_centred_reinforce(toy):
  """coef 0, for any policy."""
  dro = toy.get_method('dro')
  free = with_loss(dro, losses.DRO(coef=0.0))
  same(push(toy, free), push(toy, with_loss(dro, losses.Reinforce())))


def test_one_step_regressions_agree_on_policy(toy):
  """Direct advantage is centred REINFORCE over coef, as a mean over steps:
  nine, since the observation cuts row 0 in two."""
  method = toy.get_method('direct_advantage')
  base = dataclasses.replace(
    method, losses=(losses.Reinforce(),), aggregation=SeqMeanTokenSum()
  )
  reinforce = push(toy, base, on_policy=True)
  same(push(toy, method, on_policy=True), 100 * 8 / 9 * reinforce)
