"""Clip-higher: a wider upper clip, nothing else of DAPO.

Paper: Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at
  Scale", 2025, section 3.1; as a baseline in Cui et al., "The Entropy Mechanism
  of Reinforcement Learning for Reasoning Language Models", 2025.
Change: against GRPO without KL, the upper clip is 0.28, so that rare good
  tokens can become likelier; groups of equal rewards are dropped.
Defaults: clip 0.2/0.28, token mean, groups of equal rewards dropped (official
  scripts of Entropy-Mechanism-of-RL, cliphigher).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.28); TokenMean(); ZeroVariance()
Headline: Qwen2.5-7B, average of seven benchmarks: GRPO 38.6, clip-higher 38.8;
  32B: 45.8, 47.2.
Evidence: verified in code (PRIME-RL/Entropy-Mechanism-of-RL, verl).
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=clip_higher --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with asymmetric limits."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(clip_low=0.2, clip_high=0.28),),
    group_filter=selection.ZeroVariance(),
    aggregation=TokenMean(),
  )
