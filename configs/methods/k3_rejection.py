"""k3 rejection: rows on which sampler and trainer diverge drop out.

Paper: no paper: the preset decoupled_k3_rs_token_tis of verl, after
  Liu et al., "When Speed Kills Stability", 2025.
Change: against TIS, a row leaves the loss where the mean of r - 1 - log r over
  its tokens exceeds the limit, r = pi_old / pi_sampler. k3_rejection@k2 takes
  the mean of (log r)^2 / 2, k3_rejection@mask does not correct kept tokens.
Defaults: limit 0.01, truncation at 2 (the preset).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); DivergenceMask(limit=0.01, estimator='k3', level='mean');
  TruncatedImportance(limit=2.0, level='token', normalize=False); TokenMean()
Headline: unverified.
Evidence: verified in code (verl rollout_corr_helper.py).
Paper and code: in verl dropped tokens leave the denominator of the loss, here
  they stay in it.
Command: python -m experiments.train --config=configs/worlds/mismatch.py
  --method=k3_rejection --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'tis'  # what influence compares it with
VARIANTS = {
  'k2': ("weights.DivergenceMask.estimator='k2'",),
  'mask': ('weights.TruncatedImportance=null',),
}


def get_method() -> Method:
  """GRPO with the row mask and truncated token weights."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    weights=(weights.DivergenceMask(), weights.TruncatedImportance()),
    aggregation=TokenMean(),
  )
