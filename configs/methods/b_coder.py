"""B-Coder: Q-learning whose action values are the logits of the policy.

Paper: Yu et al., "B-Coder: Value-Based Deep Reinforcement Learning for Program
  Synthesis", 2023.
Change: against PPO, no policy gradient: logits (as advantages) plus a value
  head are fitted to r + gamma Q(s', a), where the initial policy, not Q,
  chooses a. Needs model.value_head=True.
Defaults: gamma 1, cap 1, alpha 1, weights 0.1 and 0.5 of imitation on right
  rows from data (alpha, gamma and weights are ours).
Pieces: DuelingQ(alpha=1.0, advantage_coef=0.1, likelihood_coef=0.5);
  TokenMean(); ConservativeTarget(gamma=1.0, cap=1.0)
Headline: APPS pass@1 2.30, pass@5 3.80 (CodeRL 2.20, 3.10).
Evidence: reconstructed from the text; code not looked for.
Paper and code: here V and the logits are trained together, without the first
  stage in which logits are frozen.
Command: python -m experiments.train --config=configs/chain.py
  --method=b_coder --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """Samples by their rewards, data also by likelihood."""
  return Method(
    value_target=credit.ConservativeTarget(),
    losses=(losses.DuelingQ(),),
    aggregation=TokenMean(),
  )
