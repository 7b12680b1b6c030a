"""TOPR: right answers are imitated, wrong ones tapered off.

Paper: Le Roux et al., "Tapered Off-Policy REINFORCE: Stable and efficient
  reinforcement learning for LLMs", 2025.
Change: against REINFORCE with rewards -1 and +1, rows with a negative reward
  are weighted by the sequence ratio cut to [0, 1].
Defaults: rewards 2 R - 1 for tasks that pay 0 or 1, no baseline, loss divided
  by the row's length.
Pieces: Affine(scale=2.0, offset=-1.0); TOPR(positive_low=1.0,
  positive_high=1.0, negative_low=0.0, negative_high=1.0, denominator='old');
  SeqMeanTokenMean()
Headline: Llama 3 8B: weighted self-consistency 55.5 to 61.5 (secondary source).
Evidence: read in paper (excerpt), formula also in code of a peer (ROLL).
Paper and code: ROLL uses the token ratio and advantages; the paper the
  unnormalised sequence ratio and rewards.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=topr --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Signed rewards with tapered weights."""
  return Method(
    shaping=(shaping.Affine(scale=2.0, offset=-1.0),),
    losses=(losses.TOPR(),),
    aggregation=SeqMeanTokenMean(),
  )
