"""NTHR: smaller advantages on wrong tokens that resemble right ones.

Paper: "On the Effect of Negative Gradient in Group Relative Deep Reinforcement
  Optimization", 2025.
Change: against GRPO, tokens of wrong responses that pull the group's right
  responses down keep only 2 |p - 1/2| of their advantage, p the share of right
  responses.
Defaults: beta 1; no KL.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  NegativeTokenDamping(beta=1.0, correct_above=0.5); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean()
Headline: removes the fall of the right responses' likelihood; the number is
  unverified.
Evidence: reconstructed from an implementation note with the complete formula.
Paper and code: official code not read. Memory: probabilities of all tokens of
  the group at every position, [B, T, G T].
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=nthr
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO with damped negative tokens."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.NegativeTokenDamping(beta=1.0),
    ),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
  )
