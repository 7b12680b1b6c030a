"""CPO-SimPO: the loss of SimPO and the likelihood of chosen responses.

Paper: Xu et al., "Contrastive Preference Optimization", 2024, with the score of
  Meng et al., "SimPO", 2024; a combination of their code, no paper.
Change: against SimPO, chosen responses are kept likely; against CPO, scores are
  means over tokens with a target margin.
Defaults: beta 0.1, gamma 0.5, coefficient 1 (TRL CPOConfig with loss_type
  simpo).
Pieces: PairLoss(score=MeanLogp(beta=0.1), link=Sigmoid(label_smoothing=0.0,
  gamma=0.5), coef=1.0); ChosenLikelihood(coef=1.0, average='token');
  TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL cpo_trainer.py, by a digest; gamma and the
  coefficient as in copies of CPOConfig).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=cpo_simpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'simpo'  # what influence compares it with


def get_method() -> Method:
  """No reference."""
  return Method(
    losses=(
      pref.PairLoss(
        score=pref.MeanLogp(beta=0.1), link=pref.Sigmoid(gamma=0.5)
      ),
      pref.ChosenLikelihood(),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
