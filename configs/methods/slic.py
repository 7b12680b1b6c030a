"""SLiC: hinge on the likelihood gap, and likelihood of the chosen.

Paper: Zhao et al., "SLiC-HF: Sequence Likelihood Calibration with Human
  Feedback", 2023.
Change: against DPO, a hinge on raw log-likelihoods without a reference, and a
  maximum-likelihood term.
Defaults: delta 1, coefficient 0.1 (HALOs).
Pieces: PairLoss(score=SumLogp(beta=1.0), link=Hinge(delta=1.0), coef=1.0);
  ChosenLikelihood(coef=0.1, average='row_sum'); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (HALOs SLiCTrainer, by a digest; its broadcast of the
  regulariser is not copied).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=slic
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """No reference; the chosen response is the target of the regulariser."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.SumLogp(beta=1.0), link=pref.Hinge(delta=1.0)),
      pref.ChosenLikelihood(coef=0.1, average='row_sum'),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
