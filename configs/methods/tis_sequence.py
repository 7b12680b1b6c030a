"""Sequence TIS: one truncated importance weight for each response.

Paper: Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy
  RL Training", 2025.
Change: against TIS, the weight is that of the whole response, min(prod_t pi_old
  / pi_sampler, 2).
Defaults: limit 2 (verl default), not normalised.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); TruncatedImportance(limit=2.0, level='sequence',
  normalize=False); TokenMean()
Headline: unverified.
Evidence: verified in code (verl rollout_corr_helper.py, a peer).
Paper and code: the product over a long response is at the limit or near 0 for
  small mismatches; verl offers it beside the token level.
Command: python -m experiments.train --config=configs/worlds/mismatch.py
  --method=tis_sequence --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'tis'  # what influence compares it with


def get_method() -> Method:
  """GRPO with the sequence weight."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    weights=(weights.TruncatedImportance(limit=2.0, level='sequence'),),
    aggregation=TokenMean(),
  )
