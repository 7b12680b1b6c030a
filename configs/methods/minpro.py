"""MinPRO: the token ratio times the smallest ratio before it.

Paper: "A Step Back: Prefix Importance Ratio Stabilizes Policy Optimization".
Change: against CISPO, the weight is r_t min_{j < t} r_j, a bounded stand-in for
  the product of all ratios up to t.
Defaults: bounds 0.2/0.28 and token mean as in our CISPO; those of the paper are
  unverified.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); MinPRO(clip_low=0.2,
  clip_high=0.28, form='score'); TokenMean()
Headline: unverified.
Evidence: reconstructed: formula from a secondary source, use inside the loss
  unverified.
Paper and code: no code found.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=minpro --set=model.path=runs/chain_warm
minpro@scaled has no lower bound, which hides the prefix where ratios are near
1: ours, for small worlds.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'cispo'  # what influence compares it with

VARIANTS = {
  'scaled': ('losses.MinPRO.clip_low=1.0',),
}


def get_method() -> Method:
  """GRPO advantages with the prefix weight."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.MinPRO(form='score'),),
    aggregation=TokenMean(),
  )
