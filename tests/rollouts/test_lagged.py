"""Stale rollouts are sampled by the weights of earlier iterations."""

import dataclasses

import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.overrides import override
from rl_jax.pieces.losses import (
  TOPR,
  KLCov,
  NegativeLogLikelihood,
  PPOClip,
  Reinforce,
)
from rl_jax.pieces.regularizers import KLPenalty
from rl_jax.pieces.weights import IcePop, SequenceMask, TruncatedImportance
from rl_jax.rollouts import lagged
from rl_jax.runs import assembly


@pytest.mark.parametrize('staleness', [0, 1, 2, 4])
def test_the_weights_of_iteration_k_minus_s_sample(staleness):
  """By hand: theta_k is the number k, made by 3 k optimizer steps."""
  params, step = 0, 0
  history = lagged.initial(staleness, params, step)
  for k in range(6):  # iterations done
    expected = max(0, k - staleness)
    found = lagged.sampler(history, params, step)
    assert found == (expected, 3 * expected)
    history = lagged.pushed(history, params, step)
    assert len(history) == staleness
    params, step = params + 1, step + 3


def test_what_cannot_be_stale_is_refused(toy):
  """Naming the field and what to set."""
  config = bandit.get_config(toy.get_method('tis'))
  stale = override(config, 'rollout.staleness', '2')
  with pytest.raises(ValueError, match='staleness = 2.*max_logp_gap = 1.0'):
    validate(stale)
  stale = override(stale, 'guards.max_logp_gap', 'null')
  validate(stale)
  logged = override(stale, 'rollout.recorded_prompts', '8')
  with pytest.raises(ValueError, match='staleness = 2, but all rows are data'):
    lagged.check(logged.rollout, None)
  with pytest.raises(ValueError, match=r'staleness = -1 is outside \[0'):
    override(config, 'rollout.staleness', '-1')


def test_losses_without_a_correction_are_named(toy, caplog):
  """Once, where rows are of older weights; a clip, a correction, an off-policy
  loss and losses on data give no warning."""
  stale = override(
    bandit.get_config(toy.get_method('reinforce')), 'rollout.staleness', '1'
  )

  def warned(losses, weights=(), config=stale):
    method = config.method.replace(losses=losses, weights=weights)
    caplog.clear()
    assembly.warn_of_older_weights(dataclasses.replace(config, method=method))
    return caplog.text

  assert 'staleness = 1, but method.losses.0.Reinforce has neither' in warned(
    (Reinforce(),)
  )
  both = warned((Reinforce(), KLCov(), KLPenalty()))
  assert 'losses.0.Reinforce and method.losses.1.KLCov have neither' in both
  fresh = override(stale, 'rollout.staleness', '0')
  assert not warned((Reinforce(),), config=fresh)
  for losses in ((PPOClip(),), (TOPR(),), (NegativeLogLikelihood(),)):
    assert not warned(losses)
  for weight in (TruncatedImportance(), IcePop(), SequenceMask()):
    assert not warned((Reinforce(),), (weight,))
