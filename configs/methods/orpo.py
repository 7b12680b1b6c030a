"""ORPO: likelihood of the chosen and a log-sigmoid of the odds ratio.

Paper: Hong et al., "ORPO: Monolithic Preference Optimization without Reference
  Model", 2024.
Change: against DPO, no reference and no supervised stage before: both terms in
  one loss.
Defaults: lambda 0.1 (Mistral-ORPO-beta). Response tokens only; both codes also
  train the prompt of the chosen.
Pieces: PairLoss(score=LogOdds(), link=Sigmoid(label_smoothing=0.0, gamma=0.0),
  coef=0.1); ChosenLikelihood(coef=1.0, average='token'); TokenMean();
  RecordedPairs()
Headline: unverified.
Evidence: verified in code (xfactlab/orpo, TRL; by digests).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=orpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """Odds of mean likelihoods."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogOdds(), link=pref.Sigmoid(), coef=0.1),
      pref.ChosenLikelihood(),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
