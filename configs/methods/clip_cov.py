"""Clip-Cov: a few tokens of high covariance lose their gradient.

Paper: Cui et al., "The Entropy Mechanism of Reinforcement Learning for
  Reasoning Language Models", 2025.
Change: against GRPO without KL, a random 2e-4 of the tokens, drawn where
  (A - mean A)(logp - mean logp) lies in (1, 5), is dropped; the clip is wide.
Defaults: fraction 2e-4, window (1, 5), ratio range [0, 2], token mean, groups
  of equal rewards dropped (official scripts; 8 samples, 8 updates per rollout).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=1.0,
  clip_high=1.0); ClipCovDrop(fraction=0.0002, low=1.0, high=5.0, clip_low=1.0,
  clip_high=1.0); TokenMean(); ZeroVariance()
Headline: Qwen2.5-7B, average of seven benchmarks: GRPO 38.6, clip-higher 38.8,
  Clip-Cov 40.4; 32B: 45.8, 47.2, 50.3.
Evidence: verified in code (PRIME-RL/Entropy-Mechanism-of-RL).
Paper and code: the code ranks tokens per microbatch and device, the paper and
  this implementation over the minibatch.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=clip_cov
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO with a wide clip and the covariance drop."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(clip_low=1.0, clip_high=1.0),),
    weights=(
      weights.ClipCovDrop(
        fraction=2e-4, low=1.0, high=5.0, clip_low=1.0, clip_high=1.0
      ),
    ),
    aggregation=TokenMean(),
    group_filter=selection.ZeroVariance(),
  )
