"""SPO tree: segments that rows share are valued by the rows below them.

Paper: Guo et al., "Segment Policy Optimization: Effective Segment-Level Credit
  Assignment in RL for Large Language Models", 2025.
Change: against GRPO without KL, the rows of a group are the leaves of a tree; a
  token's advantage is the value of its segment's end minus that of its begin,
  values are means over leaves, and tokens that the sampler was sure of
  (p >= 0.9) are not trained.
Defaults: threshold 0.9, clip 0.2; segments of 30 tokens (GSM8K). Branches 2, 2
  and what is left of the group, here; 6, 6 and 6 in the paper:
  --set=method.rollout.branches=6,6 --set=rollout.group_size=216
Pieces: TreeDifference(scale='none'); PPOClip(clip_low=0.2, clip_high=0.2);
  TokenMean(); SegmentTree(branches=(2, 2), segment_tokens=30, threshold=0.9)
Headline: 7 to 11 points over GRPO on MATH500 at 2K and 4K tokens (1.5B).
Evidence: verified in code (AIFrameResearch/SPO).
Paper and code: segments without an advantage are dropped, as in the code; a KL
  penalty of 0.05 and whitening of the base trainer are left out, as not every
  released run has them.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=spo_tree --set=method.rollout.segment_tokens=12
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers.segment_tree import SegmentTree

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """PPO clip on differences of tree values."""
  return Method(
    credit=(credit.TreeDifference(),),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
    rollout=SegmentTree(),
  )
