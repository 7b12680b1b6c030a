"""DPPO (KL): a trust region in the binary KL divergence of each draw.

Paper: "Rethinking the Trust Region in LLM Reinforcement Learning", 2026.
Change: against GRPO without KL, a token is dropped when the KL divergence of
  its draw, not its ratio, has moved too far in the direction of the advantage.
Defaults: limit 0.05 on both sides, ratios cut at 20, no dual clip (example
  script of verl).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); DPPO(divergence='kl',
  low=0.05, high=0.05, ratio_limit=20.0); TokenMean()
Headline: unverified.
Evidence: verified in code (verl core_algos.py, a peer).
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=dppo_kl --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the divergence mask."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.DPPO(divergence='kl', low=0.05, high=0.05),),
    aggregation=TokenMean(),
  )
