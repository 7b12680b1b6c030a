"""A2FM: expensive modes earn less on prompts that the cheap mode solves.

Paper: "A2FM: An Adaptive Agent Foundation Model for Tool-Aware Hybrid
  Reasoning", 2025.
Change: against GRPO, a response that freely chose a mode other than instant is
  rewarded with 1 - p^alpha, p the success rate of the forced instant rollouts.
  Needs extras['mode_B'] and ['forced_B'] (see rl_jax/pieces/row_inputs.py).
Defaults: alpha 2 (paper). The numbers of forced and free rollouts are set by
  the sampler; prefixes that force a mode must be masked.
Pieces: AdaptiveModeReward(alpha=2.0); GroupCenter(); GroupScale(eps=1e-06,
  ddof=1); PPOClip(clip_low=0.2, clip_high=0.2); SeqMeanTokenMean()
Headline: 32B: BrowseComp 13.4, AIME25 70.4, HLE 16.7.
Evidence: reconstructed from notes; the official code has inference only.
Paper and code: which mode's success rate, and how the parts of the reward
  combine, are unverified.
Command: python -m experiments.train --config=configs/arithmetic_described.py
  --method=a2fm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO on rewards that know the cost of a mode."""
  return Method(
    shaping=(shaping.AdaptiveModeReward(alpha=2.0),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
  )
