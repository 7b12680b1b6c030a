"""SubPO: tokens are credited with the marginal gains of a set function.

Paper: Prajapat et al., "Submodular Reinforcement Learning", 2023.
Change: against REINFORCE, the return of a token is what the response still adds
  to a set function F, sum over j >= t of F(prefix of j + 1) - F(prefix of j).
  Needs extras['marginal_gain_BT'] (see rl_jax/pieces/row_inputs.py).
Defaults: the task's reward is added to the gains (set its reward_weights to 0
  for the gains only); no baseline, no entropy bonus (params of the coverage
  task).
Pieces: SetGains(coef=1.0); Reinforce(); SeqMeanTokenSum()
Headline: unverified.
Evidence: read in paper (the formula); constants verified in code
  (manish-pra/non-additive-RL).
Paper and code: main.py multiplies by the cumulative value of the prefix instead
  of future marginal gains.
Command: python -m experiments.train --config=configs/worlds/coverage.py
  --method=subpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Score-function gradient of future marginal gains."""
  return Method(
    credit=(credit.SetGains(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
