"""RPO: DPO and likelihood of the chosen, against over-optimisation.

Paper: Liu et al., "Provably Mitigating Overoptimization in RLHF: Your SFT Loss
  is Implicitly an Adversarial Regularizer", 2024.
Change: against DPO, a maximum-likelihood term on the chosen response, which
  pessimism about the reward amounts to.
Defaults: beta 0.5, coefficient 0.2 (average form of appendix F, recommended for
  reasoning: the mean over responses of the mean over tokens). Cumulative form:
  coefficient 0.005 * beta, average row_sum.
Pieces: PairLoss(score=LogRatio(beta=0.5, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0);
  ChosenLikelihood(coef=0.2, average='row_mean'); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (YSLIU627/Regularized-Preference-Optimization).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=rpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """The average form."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(beta=0.5), link=pref.Sigmoid()),
      pref.ChosenLikelihood(coef=0.2, average='row_mean'),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
