"""DisCO-b: mean score of right answers minus that of wrong ones.

Paper: Li et al., "DisCO: Reinforcing Large Reasoning Models with Discriminative
  Constrained Optimization", 2025.
Change: against DisCO, the soft maximum over wrong answers is their mean (tau to
  infinity).
Defaults: score mean logp, hinge 1e3 and 1e-4 (official scripts).
Pieces: DisCO(threshold=0.5, score='logp'); KLConstraint(coef=1000.0,
  limit=0.0001); TokenMean()
Headline: unverified.
Evidence: verified in code (Optimization-AI/DisCO).
Paper and code: none for this variant.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=disco_b
"""

from rl_jax.method import Method
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'disco'  # what influence compares it with


def get_method() -> Method:
  """Raw rewards decide which rows are right."""
  return Method(
    losses=(
      losses.DisCO(tau=None),
      regularizers.KLConstraint(coef=1e3, limit=1e-4),
    ),
    aggregation=TokenMean(),
  )
