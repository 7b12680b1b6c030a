"""Entropy quantile (80/20): only high-entropy tokens are trained.

Paper: Wang et al., "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive
  Effective Reinforcement Learning for LLM Reasoning", 2025.
Change: against DAPO without overlong shaping, only the fifth of the tokens with
  the largest entropy is trained.
Defaults: fraction 0.2, clip 0.2/0.28, groups of equal rewards dropped.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.28); EntropyQuantile(fraction=0.2); TokenMean(); ZeroVariance()
Headline: unverified.
Evidence: verified in code (trl grpo_trainer.py, get_high_entropy_mask, in
  copies of it); clip-higher with DAPO's filter below it is reconstructed.
Paper and code: trl (top_entropy_quantile) keeps the entropies from the linearly
  interpolated quantile on: floor(0.2 (n - 1)) + 1 of n tokens, one more than
  floor(0.2 n) unless 5 divides n. Dropped tokens stay in the denominator.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=entropy_quantile
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'clip_higher'  # what influence compares it with


def get_method() -> Method:
  """Clip-higher on the forking tokens."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(clip_low=0.2, clip_high=0.28),),
    weights=(weights.EntropyQuantile(fraction=0.2),),
    group_filter=selection.ZeroVariance(),
    aggregation=TokenMean(),
  )
