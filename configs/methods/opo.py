"""OPO: REINFORCE with the length-weighted group baseline.

Paper: Hao et al., "On-Policy RL with Optimal Reward Baseline", 2025.
Change: against REINFORCE, the baseline is the mean of the group's rewards
  weighted by response length, which minimises the variance; one update per
  rollout.
Defaults: no std, no clip, no KL; sum over tokens, mean over rows.
Pieces: LengthWeightedCenter(); Reinforce(); SeqMeanTokenSum()
Headline: unverified.
Evidence: verified in code (verl core_algos.py opo, a peer).
Paper and code: verl keeps the PPO clip, which is idle with one update per
  rollout.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=opo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Length-weighted baseline, score function."""
  return Method(
    credit=(credit.LengthWeightedCenter(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
