"""Hinge DPO: a pair counts until its gap of implicit rewards is 1.

Paper: Liu et al., "Statistical Rejection Sampling Improves Preference
  Optimization", 2023 (hinge-norm), after SLiC-HF.
Change: against DPO, the logistic loss is a hinge: no gradient from pairs that
  are separated by 1.
Defaults: beta 0.1 (TRL, loss_type hinge; RSO calls it gamma and has 0.05).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'), link=Hinge(delta=1.0),
  coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=hinge_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """DPO with the link Hinge."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.Hinge()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
