"""Dr. GRPO: GRPO without its two length and difficulty biases.

Paper: Liu et al., "Understanding R1-Zero-Like Training: A Critical
  Perspective", 2025.
Change: against GRPO, no division by the group std, and the token sum is divided
  by a constant length instead of the row's own; no KL.
Defaults: clip 0.2. The constant is 1024 tokens here; set it to the limit on
  response tokens (it only rescales the gradient):
  --set=method.aggregation.SeqMeanTokenSumNorm.length=256
Pieces: GroupCenter(); PPOClip(clip_low=0.2, clip_high=0.2);
  SeqMeanTokenSumNorm(length=1024.0)
Headline: unverified.
Evidence: verified in code (verl and trl).
Paper and code: verl of early 2026 did not divide by the number of rows.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=dr_grpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSumNorm


def get_method() -> Method:
  """Group centring only, PPO clip, sum over a constant."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenSumNorm(length=1024.0),
  )
