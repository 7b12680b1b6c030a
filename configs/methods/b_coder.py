"""B-Coder: Q-learning whose action values are the logits of the policy.

Paper: Yu et al., "B-Coder: Value-Based Deep Reinforcement Learning for Program
  Synthesis", 2023.
Change: against PPO, no policy gradient: logits (as advantages) plus a value are
  fitted to r + gamma Q(s', a), where the initial policy, not Q, chooses a. The
  value is what a first stage has learned (b_coder@values, logits frozen), which
  stays, and a residual that starts at 0. Needs model.value_head=True,
  model.num_values=2 and model.critic=residual.
Defaults: gamma 1, cap 1, alpha 1, weights 0.1 and 0.5 of imitation on right
  rows from data (alpha, gamma and weights are ours). b_coder@joint trains value
  and logits together from the start. method.reference=CopyEvery(iterations=1)
  is Q-learning, where the policy itself chooses a.
Pieces: DuelingQ(stage='residual', alpha=1.0, advantage_coef=0.1,
  likelihood_coef=0.5); TokenMean(); ConservativeTarget(gamma=1.0, cap=1.0)
Headline: APPS pass@1 2.30, pass@5 3.80 (CodeRL 2.20, 3.10).
Evidence: reconstructed from the text; code not looked for.
Paper and code: there the encoder is shared and frozen. Programs are ranked by
  experiments.papers.worlds.ranked_programs.
Command: python -m experiments.train --config=configs/worlds/bracket_programs.py
  --method=b_coder --set=method.losses.DuelingQ.alpha=0.1
  --set=model.path=runs/bracket_values
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with
VARIANTS = {
  'values': ("losses.DuelingQ.stage='values'",),
  'joint': ("losses.DuelingQ.stage='joint'",),
}


def get_method() -> Method:
  """Samples by their rewards, data also by likelihood."""
  return Method(
    value_target=credit.ConservativeTarget(),
    losses=(losses.DuelingQ(stage='residual'),),
    aggregation=TokenMean(),
  )
