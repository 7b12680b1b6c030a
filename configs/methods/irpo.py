"""Iterative RPO: online DPO in rounds that keeps right answers likely.

Paper: Pang et al., "Iterative Reasoning Preference Optimization", 2024.
Change: against iterative DPO, the mean log-probability of the winner's tokens
  is added to the loss.
Defaults: alpha 1, beta 0.1; rounds of 50 iterations (ours: theirs are 4 over
  the data). One pair a prompt here, of 30 samples 10 there.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0);
  ChosenLikelihood(coef=1.0, average='row_mean'); TokenMean();
  BestWorst(min_gap=0.0, margin_scale=0.0); CopyEvery(iterations=50)
Headline: unverified.
Evidence: reconstructed (its abstract: DPO and a likelihood term in rounds; the
  mean over tokens and the numbers above are unverified).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=irpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import CopyEvery


def get_method() -> Method:
  """Best against worst sample, and the likelihood of the best."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),
      pref.ChosenLikelihood(average='row_mean'),
    ),
    aggregation=TokenMean(),
    pairs=pref.BestWorst(),
    reference=CopyEvery(iterations=50),
  )
