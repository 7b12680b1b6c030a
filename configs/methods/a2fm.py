"""A2FM: expensive modes earn less on prompts that the cheap mode solves.

Paper: "A2FM: An Adaptive Agent Foundation Model for Tool-Aware Hybrid
  Reasoning", 2025.
Change: against GRPO without KL, each group has two rollouts in every forced
  mode, whose prefix is not trained, and free ones; of these, one that chose a
  mode other than instant is rewarded with 1 - p^alpha, p the success rate of
  the forced instant rollouts. Needs a task with `modes` that returns `mode`.
Defaults: alpha 2 (paper); the numbers of forced and free rollouts are not
  known: 2 in each mode, all others of rollout.group_size are free.
Pieces: AdaptiveModeReward(alpha=2.0, correct_above=0.5); GroupCenter();
  GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  SeqMeanTokenMean(); ForcedModes(samples=2)
Headline: 32B: BrowseComp 13.4, AIME25 70.4, HLE 16.7.
Evidence: reconstructed from notes; the official code has inference only.
Paper and code: which mode's success rate, and how the parts of the reward
  combine, are unverified: here a product, whose factors of accuracy and format
  are the task's (configs/worlds/modes.py: 0 without the form).
Command: python -m experiments.train --config=configs/worlds/modes.py
  --method=a2fm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.rollouts.wrappers.forced_modes import ForcedModes

BASELINE = 'grpo@no_kl'  # what influence compares it with


def get_method() -> Method:
  """GRPO with forced modes, on rewards that know the cost of a mode."""
  return Method(
    shaping=(shaping.AdaptiveModeReward(alpha=2.0),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    rollout=ForcedModes(samples=2),
  )
