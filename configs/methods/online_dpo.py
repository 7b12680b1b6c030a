"""Online DPO: pairs are samples of the policy, labelled by their reward.

Paper: Guo et al., "Direct Language Model Alignment from Online AI Feedback",
  2024.
Change: against DPO, every step samples its pairs; equal rewards make none.
Defaults: beta 0.1 (TRL OnlineDPOTrainer); groups of 2 there, best against worst
  of larger ones. TRL keeps ties.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  BestWorst(min_gap=0.0, margin_scale=0.0)
Headline: unverified.
Evidence: verified in code (TRL online_dpo_trainer.py, by a digest).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=online_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Best against worst sample, a frozen reference."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),),
    aggregation=TokenMean(),
    pairs=pref.BestWorst(),
  )
