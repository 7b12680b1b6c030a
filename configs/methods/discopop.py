"""DiscoPOP: a blend of logistic and exponential loss, found by search.

Paper: Lu et al., "Discovering Preference Optimization Algorithms with and for
  Large Language Models", 2024.
Change: against DPO, pairs with a positive gap have an exponential loss; the
  blend follows the gap.
Defaults: beta 0.1, tau 0.05 (TRL).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=DiscoPOP(tau=0.05), coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=discopop
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """The log-ratio modulated loss."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.DiscoPOP()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
