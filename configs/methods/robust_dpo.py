"""Robust DPO: unbiased under labels that are flipped at a known rate.

Paper: Chowdhury et al., "Provably Robust DPO: Aligning Language Models with
  Noisy Feedback", 2024.
Change: against cDPO, the loss is corrected for the flips instead of smoothed;
  it is not bounded below, so it must be stopped early.
Defaults: flip rate 0.1, beta 0.1 (TRL).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Robust(flip_rate=0.1), coef=1.0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL dpo_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=robust_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'cdpo'  # what influence compares it with


def get_method() -> Method:
  """The loss of clean labels in expectation."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(), link=pref.Robust(flip_rate=0.1)),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
