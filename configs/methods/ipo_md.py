"""IPO-MD: IPO on pairs of a mixture of policy and reference.

Paper: Calandriello et al., "Human Alignment of Large Language Models through
  Online Preference Optimisation", 2024.
Change: against IPO, both responses are sampled, from the geometric mixture of
  policy and reference.
Defaults: mixture 0.125 (of Nash-MD), tau 0.1. Samples of the policy itself are
drawn and discarded here.
Pieces: PairLoss(score=LogRatio(beta=1.0, length='sum'), link=Square(tau=0.1),
  coef=1.0); TokenMean(); BestWorst(min_gap=0.0, margin_scale=0.0);
  Against(coef=0.125, trained='opponent')
Headline: unverified.
Evidence: reconstructed.
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=ipo_md
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers import Against


def get_method() -> Method:
  """Best against worst of the mixture, sums of log-ratios."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(beta=1.0), link=pref.Square(tau=0.1)),
    ),
    aggregation=TokenMean(),
    pairs=pref.BestWorst(),
    rollout=Against(coef=0.125, trained='opponent'),
  )
