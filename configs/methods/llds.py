"""LLDS: GRPO with a penalty where good actions have become less likely.

Paper: "On GRPO Collapse in Search-R1: The Lazy Likelihood-Displacement Death
  Spiral", 2025.
Change: against GRPO, tokens of rows with A >= 0 that fell below the old policy
  pay for it where their whole action fell.
Defaults: coefficient 0.2 (script; 0.1 in a secondary source), action gate, KL
  1e-3, token mean.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); LLDS(coef=0.2, gate='action'); KLPenalty(coef=0.001,
  estimator='k3'); TokenMean()
Headline: +37.8% (3B) and +32.0% (7B) over GRPO on seven question-answering
  sets.
Evidence: verified in code (the paper's repository, dp_actor.py).
Paper and code: reduce_threshold is passed but never read; rows with A = 0 are
  included; the script also has an entropy coefficient of 0.001, off here and on
  in llds@released. Needs several updates per rollout.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=llds --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import TokenMean

VARIANTS = {'released': ('losses+=EntropyBonus(coef=0.001)',)}


def get_method() -> Method:
  """GRPO with the displacement hinge."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(
      losses.PPOClip(),
      regularizers.LLDS(coef=0.2),
      regularizers.KLPenalty(coef=1e-3),
    ),
    aggregation=TokenMean(),
  )
