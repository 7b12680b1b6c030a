"""GSPO: one length-normalised ratio per sequence, clipped once.

Paper: Zheng et al., "Group Sequence Policy Optimization", 2025.
Change: against GRPO without KL, the ratio of every token is the geometric mean
  of the row, and the clip acts on whole rows.
Defaults: clip 3e-4/4e-4, no KL, 4 minibatches per rollout (paper v2 as quoted
  by trl and verl).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); GSPO(clip_low=0.0003,
  clip_high=0.0004); SeqMeanTokenMean()
Headline: unverified.
Evidence: verified in code (verl, trl: peers).
Paper and code: the gradient flows through the token (GSPO-token), as in verl;
  with one advantage per row it is the same.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=gspo --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo@no_kl'  # what influence compares it with


def get_method() -> Method:
  """GRPO advantages with the sequence ratio."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.GSPO(),),
    aggregation=SeqMeanTokenMean(),
  )
