"""VESPO: a smooth weight of the whole sequence ratio.

Paper: "VESPO: Variational Sequence-Level Soft Policy Optimization", 2026.
Change: against REINFORCE with GRPO advantages, a row is weighted by w^k exp(lam
  (1 - w)) of its product ratio w: 1 on-policy, fading on both sides.
Defaults: (k, lam) = (2, 3) for A >= 0 and (3, 2) for A < 0 (trl); sum over
  tokens, mean over rows (ours).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); VESPO(positive_power=2.0,
  positive_decay=3.0, negative_power=3.0, negative_decay=2.0); SeqMeanTokenSum()
Headline: unverified.
Evidence: verified in code (trl, a peer).
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=vespo --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the soft weight."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.VESPO(),),
    aggregation=SeqMeanTokenSum(),
  )
