"""TIS: truncated importance weights between sampler and trainer.

Paper: Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy
  RL Training", 2025.
Change: against GRPO without KL and with token mean, the loss of each token is
  multiplied by min(pi_old / pi_sampler, 2) after the clip.
Defaults: limit 2 at token level (verl default), not normalised.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); TruncatedImportance(limit=2.0, level='token',
  normalize=False); TokenMean()
Headline: unverified.
Evidence: verified in code (verl rollout_corr_helper.py, a peer).
Paper and code: peers differ: verl truncates from above, slime from both sides;
  verl may divide by the mean weight (normalize=True).
Command: python -m experiments.train --config=configs/worlds/mismatch.py
  --method=tis --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO with the token weight."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    weights=(weights.TruncatedImportance(limit=2.0, level='token'),),
    aggregation=TokenMean(),
  )
