"""DPO-Positive: no gain by a chosen response that becomes less likely.

Paper: Pal et al., "Smaug: Fixing Failure Modes of Preference Optimisation with
  DPO-Positive", 2024.
Change: against DPO, the logit loses lambda times the fall of the chosen
  response below the reference.
Defaults: beta 0.3, lambda 50 (unverified).
Pieces: PairLoss(score=LogRatio(beta=0.3, length='sum'),
  link=Positive(coef=50.0), coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: reconstructed.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=dpop
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """A penalty inside the link."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.LogRatio(beta=0.3), link=pref.Positive(coef=50.0)
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
