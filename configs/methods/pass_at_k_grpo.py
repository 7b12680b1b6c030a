"""Pass@k GRPO: only the best sample of a group is credited.

Paper: Tang et al., "Optimizing Language Models for Inference Time Objectives
  using Reinforcement Learning", 2025.
Change: against GRPO without KL, the best sample gets its lead over the second
  best, divided by the group's standard deviation, and the others 0.
Defaults: eps 1e-6, ddof 1, clip 0.2, token mean (verl).
Pieces: GroupScale(eps=1e-06, ddof=1); BestOfGroup(); PPOClip(clip_low=0.2,
  clip_high=0.2); TokenMean()
Headline: unverified.
Evidence: verified in code (verl grpo_passk, a peer).
Paper and code: the division by the standard deviation is an option of verl.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=pass_at_k_grpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """Scaled rewards, then the lead of the best."""
  return Method(
    credit=(credit.GroupScale(), credit.BestOfGroup()),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
