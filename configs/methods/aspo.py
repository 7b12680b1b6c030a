"""ASPO: an early first tool call is favoured in the advantage.

Paper: "Understanding Tool-Integrated Reasoning", 2025.
Change: against DAPO's advantage, right responses with a tool call get a bias
  for early calls that is bounded by 0.7 of their advantage. Needs
  extras['first_call_B'] (see rl_jax/pieces/row_inputs.py).
Defaults: delta -2, kappa 0.7 (conservative; aggressive -2.5, 0.9); clip
  0.2/0.28, token mean, groups of equal rewards dropped (DAPO).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); FirstCallBias(coef=-2.0,
  limit=0.7, correct_above=0.5); PPOClip(clip_low=0.2, clip_high=0.28);
  TokenMean(); ZeroVariance()
Headline: pass@k above the text model for all k up to 256.
Evidence: read in paper (equation 2), and in a verl recipe.
Paper and code: the recipe bounds by kappa |A|, the paper by kappa A.
Command: python -m experiments.train --config=configs/worlds/calculator.py
  --method=aspo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dapo'  # what influence compares it with


def get_method() -> Method:
  """DAPO without length penalty, with the first-call bias."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.FirstCallBias(coef=-2.0, limit=0.7),
    ),
    losses=(losses.PPOClip(clip_low=0.2, clip_high=0.28),),
    aggregation=TokenMean(),
    group_filter=selection.ZeroVariance(),
  )
