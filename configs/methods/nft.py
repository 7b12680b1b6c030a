"""NFT: likelihood of right answers and of the implied negative policy.

Paper: Chen et al., "Bridging Supervised Learning and Reinforcement Learning in
  Math Reasoning", 2025.
Change: against supervised training on right answers, wrong answers train the
  policy that they imply, (pi_old - p pi) / (1 - p).
Defaults: negative weight 1, floors 1 and 0, weight 1 - p, token sums over 1000,
  groups of equal rewards dropped (official scripts).
Pieces: NFT(negative_weight=1.0, positive_floor=0.0, negative_floor=1.0,
  threshold=0.5, normalize=1); SeqMeanTokenSumNorm(length=1000.0);
  ZeroVariance()
Headline: Qwen2.5-Math-7B average 51.7 (GRPO 49.5, DAPO 51.2, right answers only
  48.3).
Evidence: verified in code (NVlabs/NFT).
Paper and code: the paper derives the sequence likelihood, the code uses token
  ratios; the code sums over rows, here it is their mean, so that the batch size
  does not change the learning rate.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=nft
"""

from rl_jax.method import Method
from rl_jax.pieces import losses, selection
from rl_jax.pieces.aggregation import SeqMeanTokenSumNorm


def get_method() -> Method:
  """Raw rewards decide which rows are right."""
  return Method(
    losses=(losses.NFT(),),
    group_filter=selection.ZeroVariance(),
    aggregation=SeqMeanTokenSumNorm(length=1000.0),
  )
