"""OTB: REINFORCE with a group baseline for every token position.

Paper: Li et al., "The Optimal Token Baseline: Variance Reduction for
  Long-Horizon LLM-RL", 2026.
Change: against REINFORCE, the baseline at position t is the mean of the group's
  returns weighted by the squared gradient norms up to t, measured in the logits
  from probabilities only; OPO takes response lengths for them.
Defaults: no std, no clip, no KL; ours are sums over tokens, as the baseline is
  derived for them, and one update per rollout. DiscountedReturn before it in
  `credit` makes returns-to-go of rewards of tokens.
Pieces: OptimalTokenBaseline(); Reinforce(); SeqMeanTokenSum()
Headline: groups of 4 do as well as groups of 32 (abstract).
Evidence: verified in code (verl core_algos.py optimal_token_baseline, a peer).
Paper and code: verl adds 1e-8 to the sum of the weights and keeps the PPO clip,
  which is idle with one update per rollout.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=otb
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """A baseline for every position, score function."""
  return Method(
    credit=(credit.OptimalTokenBaseline(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
