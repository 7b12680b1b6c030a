"""SALT: steps that several episodes share have the mean of their advantages.

Paper: "SALT: Step-level Advantage Assignment for Long-horizon Agents via
  Trajectory Graph", 2025.
Change: against GRPO, the advantage of a turn is the mean over all turns of the
  group with the same state, action and next state.
Defaults: those of GRPO; history 0 (the paper's is unverified).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); SharedSteps(history=0);
  PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001, estimator='k3');
  SeqMeanTokenMean()
Headline: unverified.
Evidence: reconstructed from the abstract.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=salt
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo'  # what influence compares it with


def get_method() -> Method:
  """GRPO's advantages, averaged over shared steps."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.SharedSteps(),
    ),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
