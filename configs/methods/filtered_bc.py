"""Filtered behaviour cloning: maximum likelihood of the best samples.

Paper: Abdulhai et al., "LMRL Gym: Benchmarks for Multi-Turn Reinforcement
  Learning with Language Models", 2023.
Change: against REINFORCE, the advantage is 1 / fraction on the best samples of
  a batch and 0 on others.
Defaults: fraction 0.1 (ours), by the unshaped reward of the whole episode.
Pieces: BestFraction(fraction=0.1); Reinforce(); TokenMean()
Headline: none.
Evidence: reconstructed; there the episodes are those of data.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=filtered_bc
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """The best tenth of a batch, by likelihood."""
  return Method(
    credit=(credit.BestFraction(),),
    losses=(losses.Reinforce(),),
    aggregation=TokenMean(),
  )
