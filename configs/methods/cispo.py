"""CISPO: clipped importance weights, unclipped gradients.

Paper: MiniMax, "MiniMax-M1: Scaling Test-Time Compute Efficiently with
  Lightning Attention", 2025.
Change: against GRPO without KL, the clip bounds the weight of the
  score-function gradient, so no token drops out.
Defaults: bounds 0.2/0.28 (the clip fields of verl), token mean (verl). MiniMax
  tunes only the upper bound, whose value is unverified.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); CISPO(clip_low=0.2,
  clip_high=0.28); TokenMean()
Headline: unverified.
Evidence: verified in code (verl, trl: peers).
Paper and code: verl applies both bounds; trl cuts at epsilon_high itself
  instead of 1 + epsilon_high.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=cispo --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with truncated weights."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.CISPO(),),
    aggregation=TokenMean(),
  )
