"""REINFORCE++-baseline: group mean off, then batch whitening.

Paper: Hu, "REINFORCE++: A Simple and Efficient Approach for Aligning Large
  Language Models", 2025.
Change: against GRPO, the standard deviation is that of all tokens of the
  rollout instead of the group's, and there is no KL here.
Defaults: whitening eps 1e-8 with N - 1, clip 0.2, token mean (verl).
Pieces: GroupCenter(); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); TokenMean()
Headline: unverified.
Evidence: verified in code (verl core_algos.py, a peer).
Paper and code: the outcome reward is centred, broadcast to tokens without
  discount and then whitened, so long responses weigh more; add
  KLPenalty(estimator="k2") to losses for a KL term.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=reinforce_plus_plus_baseline
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Group centring, whitening over tokens, PPO clip."""
  return Method(
    credit=(credit.GroupCenter(), credit.Whiten()),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
