"""Length-normalised DPO: the gap of mean log-ratios.

Paper: Lambert et al., "Tulu 3: Pushing Frontiers in Open Language Model
  Post-Training", 2024.
Change: against DPO, log-ratios are means over the tokens of a response.
Defaults: beta 5, learning rate 5e-7 (Tulu 3 8B).
Pieces: PairLoss(score=LogRatio(beta=5.0, length='mean'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (open-instruct dpo_utils.py, by a digest).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=ln_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Means over tokens, so a larger beta."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.LogRatio(beta=5.0, length='mean'), link=pref.Sigmoid()
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
