"""SAPO: a soft gate instead of the clip.

Paper: Gao et al., "Soft Adaptive Policy Optimization", 2025.
Change: against GRPO without KL, the surrogate is (4 / tau) sigmoid(tau (r -
  1)), which fades with the ratio instead of stopping.
Defaults: tau 1.0 for A > 0 and 1.05 otherwise (trl), mean over a row, then over
  rows.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  SAPO(positive_temperature=1.0, negative_temperature=1.05); SeqMeanTokenMean()
Headline: unverified.
Evidence: verified in code (verl, trl: peers).
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=sapo --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo@no_kl'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the soft gate."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.SAPO(),),
    aggregation=SeqMeanTokenMean(),
  )
