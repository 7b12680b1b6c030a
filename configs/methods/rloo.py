"""RLOO: REINFORCE whose baseline is the mean of the other samples.

Paper: Ahmadian et al., "Back to Basics: Revisiting REINFORCE-Style
  Optimization for Learning from Human Feedback in LLMs", 2024.
Change: against REINFORCE, A_k = R_k - mean of the other rewards of the group.
Defaults: sum over tokens, mean over rows (verl). The paper also puts the KL
  to the reference into the reward (trl: 0.05); add KLInReward(level='sequence')
  to `shaping` for that.
Pieces: LeaveOneOut(); Reinforce(); SeqMeanTokenSum()
Headline: unverified.
Evidence: verified in code (verl core_algos.py, trl rloo_trainer.py).
Paper and code: a group of one keeps its reward in one verl version and gets 0
  in the other and in trl; here it is refused at start-up.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=rloo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Leave-one-out advantages with the score-function gradient."""
  return Method(
    credit=(credit.LeaveOneOut(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
