"""cDPO: DPO with smoothed labels.

Paper: Mitchell, "A note on DPO with noisy preferences and relationship to IPO",
  2023.
Change: against DPO, labels are believed with probability 0.9: the gap stops at
  log 9.
Defaults: label smoothing 0.1 (Online-RLHF; HALOs has 0.2), beta 0.1.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.1, gamma=0.0), coef=1.0); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (HALOs, EasyLM, OpenRLHF; by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=cdpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Label smoothing 0.1."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.LogRatio(), link=pref.Sigmoid(label_smoothing=0.1)
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
