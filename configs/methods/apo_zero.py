"""APO-zero: winners up and losers down, each by itself.

Paper: D'Oosterlinck et al., "Anchored Preference Optimization and Contrastive
  Revisions: Addressing Underspecification in Alignment", 2024.
Change: against DPO, the likelihood of the winner rises and that of the loser
  falls, not only their gap.
Defaults: beta 0.1 (TRL).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'), link=APOZero(),
  coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=apo_zero
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """APO for winners better than what the policy writes."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.APOZero()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
