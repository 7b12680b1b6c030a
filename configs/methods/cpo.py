"""CPO: likelihoods instead of log-ratios, and likelihood of the chosen.

Paper: Xu et al., "Contrastive Preference Optimization: Pushing the Boundaries
  of LLM Performance in Machine Translation", 2024.
Change: against DPO, a uniform reference, and a maximum-likelihood term.
Defaults: beta 0.1, coefficient 1 (TRL).
Pieces: PairLoss(score=SumLogp(beta=0.1), link=Sigmoid(label_smoothing=0.0,
  gamma=0.0), coef=1.0); ChosenLikelihood(coef=1.0, average='token');
  TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL cpo_trainer.py, by a digest).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=cpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """No reference."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.SumLogp(), link=pref.Sigmoid()),
      pref.ChosenLikelihood(),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
