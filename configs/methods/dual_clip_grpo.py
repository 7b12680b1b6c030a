"""Dual clip: bad tokens far above the old policy lose their gradient.

Paper: Ye et al., "Mastering Complex Control in MOBA Games with Deep
  Reinforcement Learning", 2020.
Change: against GRPO without KL and with token mean, the loss of a token with A
  < 0 is at most -3 A.
Defaults: dual clip 3, clip 0.2, token mean (all three verl defaults).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2, dual_clip=3.0); TokenMean()
Headline: unverified.
Evidence: verified in code (verl core_algos.py, vanilla loss).
Paper and code: verl turns it on for every method that uses its vanilla loss,
  also where the paper of the method has none.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=dual_clip_grpo --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the dual clip."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(dual_clip=3.0),),
    aggregation=TokenMean(),
  )
