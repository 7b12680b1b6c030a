"""ADORA: groups whose right answers are not the longer ones count a tenth.

Paper: "ADORA: Training Reasoning Models with Dynamic Advantage Estimation on
  Reinforcement Learning", 2025.
Change: against GRPO, the advantages of a group are multiplied by lambda unless
  its longest right response is longer than its mean wrong one; every token
  counts alike.
Defaults: lambda 0.1, wrong responses of 3900 tokens or more left out, KL 1e-3
  (ADORA.sh). Right means reward > 0.5; the code has > 1.01 on rewards up to 2.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  LengthAdvantageScale(scale=0.1, correct_above=0.5, max_tokens=3900.0);
  PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001, estimator='k3');
  TokenMean()
Headline: unverified.
Evidence: verified in code (ShadeCloak/ADORA core_algos.py: advantages, masked
  means over tokens).
Paper and code: the README listing omits the comparison that the code makes.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=adora
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """GRPO with the length predicate on its advantages."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.LengthAdvantageScale(scale=0.1, max_tokens=3900.0),
    ),
    losses=(losses.PPOClip(), regularizers.KLPenalty(coef=1e-3)),
    aggregation=TokenMean(),
  )
