"""REBEL: gaps of log-ratios are regressed on gaps of rewards.

Paper: Gao et al., "REBEL: Reinforcement Learning via Regressing Relative
  Rewards", 2024.
Change: against online DPO, the size of the gap of rewards counts, not only its
  sign.
Defaults: beta 1 (1 / eta of the paper; ours), the reference is the policy
  before the iteration.
Pieces: PairLoss(score=LogRatio(beta=1.0, length='sum'), link=SquareOfGap(),
  coef=1.0); TokenMean(); AllPairs(min_gap=0.0, margin_scale=1.0);
  CopyEvery(iterations=1)
Headline: unverified.
Evidence: reconstructed.
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=rebel
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import CopyEvery


def get_method() -> Method:
  """All pairs of a group."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(beta=1.0), link=pref.SquareOfGap()),
    ),
    aggregation=TokenMean(),
    pairs=pref.AllPairs(margin_scale=1.0),
    reference=CopyEvery(iterations=1),
  )
