"""NCA: absolute implicit rewards, so that the chosen does not fall.

Paper: Chen et al., "Noise Contrastive Alignment of Language Models with
  Explicit Rewards", 2024.
Change: against DPO, both implicit rewards are classified against the reference,
  not against each other.
Defaults: beta 0.1 (TRL; the paper 0.01).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'), link=NCA(), coef=1.0);
  TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=nca
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """The pairwise form."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.NCA()),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
