"""MAPL: stronger preferences get larger differences of implicit rewards.

Paper: "Multi-level Aware Preference Learning: Enhancing RLHF for Complex
  Multi-Instruction Tasks", 2025.
Change: against online DPO, pairs are also compared with each other: of two
  pairs that with the larger gap of rewards is to have the larger gap of scores.
Defaults: beta 0.1, coefficient 1 (ours; unverified there). Its pairs of prompts
  for one response are data, not part of the method here.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0);
  StrengthOrder(score=LogRatio(beta=0.1, length='sum'), coef=1.0); TokenMean();
  BestWorst(min_gap=0.0, margin_scale=0.0)
Headline: unverified.
Evidence: reconstructed (the term between pairs).
Command: python -m experiments.train --config=configs/worlds/stepped.py
  --method=mapl --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Best against worst of each prompt."""
  score = pref.LogRatio()
  return Method(
    losses=(
      pref.PairLoss(score=score, link=pref.Sigmoid()),
      pref.StrengthOrder(score=score),
    ),
    aggregation=TokenMean(),
    pairs=pref.BestWorst(),
  )
