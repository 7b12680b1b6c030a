"""SPPO: the log-ratio of each response is regressed on its win rate.

Paper: Wu et al., "Self-Play Preference Optimization for Language Model
  Alignment", 2024.
Change: against iterative DPO, each response of the pair has its own target, so
that the chosen does not fall.
Defaults: beta 0.1 (ours; the recipe has 0.01 with a learning rate of 5e-7),
  best against worst; P is sigmoid of reward differences, the sample itself
  included; rounds of 20 iterations (ours).
Pieces: WinRate(temperature=1.0, with_self=1.0, against='group', center=0.0);
  WinRateRegression(beta=0.1); TokenMean(); BestWorst(min_gap=0.0,
  margin_scale=0.0); CopyEvery(iterations=20)
Headline: unverified.
Evidence: verified in code (uclaml/SPPO, by a digest; rounds reconstructed).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=sppo
sppo@single has the probability of the pair in place of both win rates.
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces import shaping
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import CopyEvery

VARIANTS = {
  'single': (
    'shaping.WinRate=null',
    'losses.WinRateRegression=null',
    'losses+=PairLoss(score=LogRatio(beta=1.0), link=PairTargets())',
    'pairs.margin_scale=1.0',
  ),
}


def get_method() -> Method:
  """The reference is the policy of the round before."""
  return Method(
    shaping=(shaping.WinRate(temperature=1.0, with_self=1.0),),
    losses=(pref.WinRateRegression(),),
    aggregation=TokenMean(),
    pairs=pref.BestWorst(),
    reference=CopyEvery(iterations=20),
  )
