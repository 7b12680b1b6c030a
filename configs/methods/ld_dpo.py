"""LD-DPO: tokens beyond the shorter response of a pair count less.

Paper: Liu et al., "Length Desensitization in Direct Preference Optimization",
  2024.
Change: against DPO, log-ratios of the tokens after the common length are
  multiplied by alpha.
Defaults: beta 0.1, alpha 0.5 (of 0 to 1; ours).
Pieces: PairLoss(score=CommonLengthRatio(beta=0.1, alpha=0.5),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/proxy.py
  --method=ld_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Half the weight for what is longer."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.CommonLengthRatio(alpha=0.5), link=pref.Sigmoid()
      ),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
