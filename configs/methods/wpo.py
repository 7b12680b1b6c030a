"""WPO: pairs weighted by how likely the policy is to write them.

Paper: Zhou et al., "WPO: Enhancing RLHF with Weighted Preference Optimization",
  2024.
Change: against DPO, off-policy pairs count less, as if the data were on-policy.
Defaults: beta 0.1 (DPO of TRL); weights at most 1.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), weight=OnPolicy(), coef=1.0);
  TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, use_weighting, in copies of it).
Paper and code: TRL divides by the collision probability of each token, as here;
  the limit 1 is a clamp of the product over both responses.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=wpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Weights by mean log-probs, aligned by the collision probability."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.LogRatio(), link=pref.Sigmoid(), weight=pref.OnPolicy()
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
