"""KL-Cov: a penalty on the tokens of largest covariance.

Paper: Cui et al., "The Entropy Mechanism of Reinforcement Learning for
  Reasoning Language Models", 2025.
Change: against GRPO without KL, there is no clip, and the 0.2% of tokens with
  the largest (A - mean A)(logp - mean logp) pay |logp - logp_old|.
Defaults: coef 1, fraction 2e-3 (7B; 2e-4 for 32B), token mean, groups of
  equal rewards dropped (official scripts; 8 samples, 8 updates per rollout).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); KLCov(coef=1.0,
  fraction=0.002); TokenMean(); ZeroVariance()
Headline: Qwen2.5-7B, average of seven benchmarks: GRPO 38.6, KL-Cov 40.6; 32B:
  45.8, 52.2.
Evidence: verified in code (PRIME-RL/Entropy-Mechanism-of-RL).
Paper and code: the paper says KL, the code penalises |log ratio|; the code
  ranks per microbatch; verl's default fraction is 2e-4, the official 7B script
  has 0.2 percent.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=kl_cov --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the covariance penalty instead of the clip."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.KLCov(coef=1.0, fraction=2e-3),),
    aggregation=TokenMean(),
    group_filter=selection.ZeroVariance(),
  )
