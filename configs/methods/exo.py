"""EXO: reverse KL between the preferences of policy and data.

Paper: Ji et al., "Towards Efficient Exact Optimization of Language Model
  Alignment", 2024.
Change: against DPO, the divergence is turned round: the policy covers the
  label, not the reverse.
Defaults: beta 0.1, label smoothing 1e-3 (TRL).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=EXO(label_smoothing=0.001), coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=exo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """The pairwise form."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.EXO()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
