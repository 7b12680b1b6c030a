"""APO-down: both responses down, losers faster.

Paper: D'Oosterlinck et al., "Anchored Preference Optimization and Contrastive
  Revisions: Addressing Underspecification in Alignment", 2024.
Change: against APO-zero, for a policy that already writes better than the
  winners.
Defaults: beta 0.1 (TRL).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'), link=APODown(),
  coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=apo_down
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'apo_zero'  # what influence compares it with


def get_method() -> Method:
  """APO for winners worse than what the policy writes."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.APODown()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
