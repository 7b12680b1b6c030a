"""GMPO: the geometric mean of clipped token ratios.

Paper: Zhao et al., "Geometric-Mean Policy Optimization", 2025.
Change: against GRPO without KL, the ratios of a row are clipped in log space
  and multiplied, not added.
Defaults: limits 0.4 nats on both sides (paper as used by verl), one value per
  row.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); GMPO(log_clip_low=0.4,
  log_clip_high=0.4); SeqMeanTokenMean()
Headline: unverified.
Evidence: verified in code (verl geo_mean, a peer).
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=gmpo --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo@no_kl'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the geometric mean."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.GMPO(),),
    aggregation=SeqMeanTokenMean(),
  )
