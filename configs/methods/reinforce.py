"""REINFORCE: the plain policy gradient with the raw reward.

Paper: Williams, "Simple statistical gradient-following algorithms for
  connectionist reinforcement learning", 1992.
Change: the starting point of every other method: no baseline, no ratio.
Defaults: sum over tokens, mean over rows, as verl (loss mode reinforce).
Pieces: Reinforce(); SeqMeanTokenSum()
Headline: none; it is the yardstick of the bandit suite.
Evidence: verified in code (verl core_algos.py).
Paper and code: verl multiplies by an optional importance weight, off here.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=reinforce
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum


def get_method() -> Method:
  """Score-function gradient of the unmodified reward."""
  return Method(losses=(losses.Reinforce(),), aggregation=SeqMeanTokenSum())
