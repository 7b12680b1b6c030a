"""CoPG: differences of regularised rewards go to zero.

Paper: Flet-Berliac et al., "Contrastive Policy Gradient: Aligning LLMs on
  sequence-level scores in a supervised-friendly fashion", 2024.
Change: against RLOO, the KL term lies inside a squared difference of two
  answers, so that the gradient is right for rows of any policy without
  importance weights.
Defaults: coefficient 0.1 (ours; the paper's is unverified). The gradient is 2
  coef times that of RLOO: the learning rate of a plain SGD would have to make
  up for it.
Pieces: CoPG(coef=0.1); TokenMean()
Headline: unverified.
Evidence: read in paper (digest; algebra checked); no code found.
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=copg
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'rloo'  # what influence compares it with


def get_method() -> Method:
  """Raw rewards, log-ratios to the reference."""
  return Method(
    losses=(losses.CoPG(coef=0.1),),
    aggregation=TokenMean(),
  )
