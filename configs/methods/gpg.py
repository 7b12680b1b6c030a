"""GPG: centred rewards, rescaled by the share of non-zero rewards.

Paper: Chu et al., "GPG: A Simple and Strong Reinforcement Learning Baseline for
  Model Reasoning", 2025.
Change: against REINFORCE with a group baseline, advantages are multiplied by
  (rows / rows with a non-zero reward); no std, clip or KL.
Defaults: token mean (verl).
Pieces: NonzeroScale(); GroupCenter(); Reinforce(); TokenMean()
Headline: unverified.
Evidence: verified in code (verl core_algos.py, a peer).
Paper and code: verl counts non-zero rewards, the paper rows that carry a
  gradient.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=gpg
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Rescaled rewards, centred, score function."""
  return Method(
    credit=(credit.NonzeroScale(), credit.GroupCenter()),
    losses=(losses.Reinforce(),),
    aggregation=TokenMean(),
  )
