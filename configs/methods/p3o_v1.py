"""P3O V1: clipped policy gradients on pairs, each answer with its own clip.

Paper: Wu et al., "Pairwise Proximal Policy Optimization: Harnessing Relative
  Feedback for LLM Alignment", 2023.
Change: against PPO, the gradient is that of the difference of two answers to
  one prompt, with sequence ratios and no critic; each answer of a pair has its
  own clip.
Defaults: clip 0.2, KL 0.1 in the reward (ours; unverified in the paper); all
  pairs of a group.
Pieces: KLInReward(coef=0.1, estimator='k1', level='sequence');
  P3O(variant='separate', clip_low=0.2, clip_high=0.2); TokenMean()
Headline: HH 6B: win rate 57.0% against PPO (secondary source, either variant).
Evidence: reconstructed: the gradient is from the paper's digests, the clip
  forms are ours.
Paper and code: not compared.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=p3o_v1 --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """Rewards with KL, all pairs of a group."""
  return Method(
    shaping=(shaping.KLInReward(coef=0.1, level='sequence'),),
    losses=(losses.P3O(variant='separate'),),
    aggregation=TokenMean(),
  )
