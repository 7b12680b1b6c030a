"""f-DPO: DPO under the Jensen-Shannon divergence.

Paper: Wang et al., "Beyond Reverse KL: Generalizing Direct Preference
  Optimization with Diverse Divergence Constraints", 2023.
Change: against DPO, the log-ratio D becomes g(D) of the divergence's
  derivative.
Defaults: beta 0.1, Jensen-Shannon.
  method.losses.PairLoss.score.divergence=forward_kl or alpha for the others.
Pieces: PairLoss(score=DivergenceRatio(divergence='js', beta=0.1, alpha=0.5,
  length='sum'), link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0);
  TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=fdpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Jensen-Shannon."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.DivergenceRatio(divergence='js'), link=pref.Sigmoid()
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
