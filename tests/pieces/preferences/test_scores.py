"""Scores of rows for losses on pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.preferences import (
  CommonLengthRatio,
  DecayedRatio,
  DivergenceRatio,
  LogOdds,
  LogRatio,
  MeanLogp,
  SumLogp,
)
from rl_jax.pieces.roles import LossContext

# Two rows: S = -10 in 5 tokens, -12 in 6; S_ref = -11, -11.5.
MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]])
LOGP = MASK * -2.0
REF = MASK * np.array([[-2.2], [-11.5 / 6]])


def scored(score, toy, logp=LOGP, mask=MASK, ref=REF, **fields):
  """The scores of the rows; padding holds garbage."""
  traj = toy.trajectories(
    mask,
    group_size=len(mask),
    logp_ref_BT=np.where(mask > 0, ref, 7.0),
    **fields,
  )
  logp = jnp.asarray(np.where(mask > 0, logp, 5.0), jnp.float32)
  return np.asarray(score(LossContext({'logp': logp}, traj)))


@pytest.mark.parametrize(
  'score, expected',
  [
    (LogRatio(), [0.1, -0.05]),
    (LogRatio(beta=5.0, length='mean'), [1.0, -2.5 / 6]),
    (SumLogp(beta=1.0), [-10.0, -12.0]),
    (MeanLogp(), [-4.0, -4.0]),
    (MeanLogp(beta=1.0, alpha=0.5), [2 * (1 - np.e)] * 2),
    (LogOdds(), [-2.0 - np.log(1 - np.exp(-2.0))] * 2),
    (DivergenceRatio(divergence='reverse_kl'), [0.1, -0.05]),
    (
      DivergenceRatio(divergence='forward_kl'),
      [-0.1 * np.exp(-1.0), -0.1 * np.exp(0.5)],
    ),
    (
      DivergenceRatio(divergence='js'),
      [-0.1 * np.log1p(np.exp(-1.0)), -0.1 * np.log1p(np.exp(0.5))],
    ),
    (
      DivergenceRatio(divergence='alpha', alpha=0.5),
      [-0.2 * np.exp(-0.5), -0.2 * np.exp(0.25)],
    ),
    # g of the sum, by 5 and 6 tokens.
    (
      DivergenceRatio(divergence='forward_kl', length='mean'),
      [-0.02 * np.exp(-1.0), -0.1 / 6 * np.exp(0.5)],
    ),
    (
      DivergenceRatio(divergence='reverse_kl', length='mean'),
      [0.02, -0.05 / 6],  # LogRatio(length='mean')
    ),
    # The sixth token of the second row, log-ratio -1/12, counts half.
    (CommonLengthRatio(), [0.1, 0.1 * (-5 / 12 - 1 / 24)]),
    (CommonLengthRatio(alpha=1.0), [0.1, -0.05]),
    # Log-ratios 1/5 and -1/12 a token; 1 + 1/2 + ... of 5 and of 6 tokens.
    (
      DecayedRatio(decay=0.5),
      [0.1 / 5 * (2 - 1 / 16), -0.1 / 12 * (2 - 1 / 32)],
    ),
    (DecayedRatio(decay=1.0), [0.1, -0.05]),
  ],
)
def test_by_hand(score, expected, toy):
  np.testing.assert_allclose(scored(score, toy), expected, rtol=1e-5)


def test_odds_by_hand_and_their_limit(toy):
  """Gap of the log-odds of means -2 and -2.5: 0.559763; certain rows are
  finite, in the gradient, too."""
  logp = MASK * np.array([[-2.0], [-2.5]])
  high, low = scored(LogOdds(), toy, logp=logp)
  np.testing.assert_allclose(high - low, 0.559763, rtol=1e-5)

  def total(x):
    traj = toy.trajectories(MASK, group_size=2)
    return LogOdds()(LossContext({'logp': x}, traj)).sum()

  for mean in (0.0, -1e-9, -0.5, -60.0):
    value, slope = jax.value_and_grad(total)(jnp.asarray(MASK * mean))
    assert np.isfinite(value) and np.isfinite(slope).all(), mean


def test_length_does_not_count_for_means(toy):
  """E1: every token twice."""
  twice = [np.repeat(x, 2, axis=1) for x in (LOGP, MASK, REF)]
  for score in (MeanLogp(), LogRatio(length='mean'), LogOdds()):
    found = scored(score, toy, *twice)
    np.testing.assert_allclose(found, scored(score, toy), rtol=1e-6)


def test_common_length_is_of_trained_rows(toy):
  """A shorter row of weight 0 does not shorten the others."""
  mask = np.array([[1, 0, 0], [1, 1, 1]])
  logp, ref = mask * -2.0, mask * -1.0
  score = CommonLengthRatio(beta=1.0, alpha=0.0)
  cut = scored(score, toy, logp, mask, ref)
  whole = scored(score, toy, logp, mask, ref, weight_B=np.array([0.0, 1.0]))
  np.testing.assert_allclose(cut, [-1.0, -1.0])
  np.testing.assert_allclose(whole, [-1.0, -3.0])


def test_decay_counts_trained_tokens(toy):
  """A token of the environment between them changes nothing."""
  mask = np.array([[1, 1, 0], [1, 0, 1]])
  logp = np.array([[-1.0, -3.0, 0.0], [-1.0, 0.0, -3.0]])
  one, other = scored(DecayedRatio(), toy, logp=logp, mask=mask, ref=0 * mask)
  assert one == other == pytest.approx(-0.1 * (1 + 3 * 0.98), rel=1e-6)


def test_large_ratios_are_finite(toy):
  for name in ('forward_kl', 'js', 'alpha'):
    for sign in (-1.0, 1.0):
      score = DivergenceRatio(divergence=name)
      assert np.isfinite(scored(score, toy, logp=MASK * sign * 300)).all()
