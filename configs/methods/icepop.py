"""IcePop: tokens on which sampler and trainer disagree are dropped.

Paper: Ling Team, "Every Step Evolves: Scaling Reinforcement Learning for
  Trillion-Scale Thinking Model", 2025.
Change: against TIS, the weight pi_old / pi_sampler is kept as it is inside
  [low, high] and is 0 outside.
Defaults: interval [0.5, 5] (OpenRLHF), token level.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); IcePop(low=0.5, high=5.0); TokenMean()
Headline: unverified.
Evidence: verified in code (NeMo-RL, slime, OpenRLHF: peers).
Paper and code: none seen; the interval of the paper is unverified.
Command: python -m experiments.train --config=configs/worlds/mismatch.py
  --method=icepop --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'tis'  # what influence compares it with


def get_method() -> Method:
  """GRPO with the two-sided mask."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    weights=(weights.IcePop(low=0.5, high=5.0),),
    aggregation=TokenMean(),
  )
