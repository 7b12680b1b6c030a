"""PPDPP: REINFORCE on returns that are standardised within each episode.

Paper: Deng et al., "Plug-and-Play Policy Planner for Large Language Model
  Powered Dialogue Agents", 2024.
Change: against REINFORCE, rewards are those of turns, and the returns of an
  episode have mean 0 and deviation 1.
Defaults: gamma 0.999; SFT comes first.
Pieces: TurnRewards(); EpisodeStandardised(gamma=0.999, eps=1e-08); Reinforce();
  SeqMeanTokenSumNorm(length=1.0)
Headline: unverified.
Evidence: verified in code (dengyang17/PPDPP agent.py, by digest).
Paper and code: two turns are always +-1/sqrt(2), whatever they earned.
  On bargaining it closes every deal, at the asked price (experiments/papers/
  episodes).
Command: python -m experiments.train --config=configs/worlds/haggling.py
  --method=ppdpp --set=model.path=runs/haggling_start
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenSumNorm

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Returns of turns within their episode."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    credit=(credit.EpisodeStandardised(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSumNorm(length=1.0),
  )
