"""HiPER: PPO with advantages of sub-goals, of actions in them, of switching.

Paper: "HiPER: Hierarchical Reinforcement Learning with Explicit Credit
  Assignment for Large Language Model Agents", 2025.
Change: against PPO, a turn writes whether it keeps its sub-goal, the sub-goal,
  and an action; each part has its own advantage and value head. Needs
  model.value_head=True, model.num_values=3 and a task that marks the parts.
Defaults: gamma 1, lambda 1 over turns and 0.95 over sub-goals, KL 0.01; the
  costs of keeping or changing a sub-goal are reward components of the task.
Pieces: TurnRewards(); HierarchicalGAE(gamma=1.0, lam_turn=1.0,
  lam_segment=0.95, bootstrap=False, normalise=True); PPOClip(clip_low=0.2,
  clip_high=0.2); HierarchicalValue(coef=0.5); KLPenalty(coef=0.01,
  estimator='k3'); TokenMean(); HierarchicalReturn(gamma=1.0, lam_turn=1.0,
  lam_segment=0.95, bootstrap=False)
Headline: 97.4 on ALFWorld, 83.3 on WebShop with 7B (paper, unverified).
Evidence: verified in code (JonP07/HiPER-agent, by digest).
Paper and code: the advantage of switching is the simple one of the code. There
  the critic is a separate model at ten times the policy's rate
  (model.critic='own', optimizer.critic_multiplier=10; here off, and in
  experiments/papers/episodes it loses a policy that succeeds), and the loss
  of each head is a mean over its own places, here a mean over all tokens.
Command: python -m experiments.train --config=configs/worlds/planned_keydoor.py
  --method=hiper --set=model.value_head=True --set=model.num_values=3
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """Three levels of credit and three value heads."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    credit=(credit.HierarchicalGAE(),),
    value_target=credit.HierarchicalReturn(),
    losses=(
      losses.PPOClip(),
      losses.HierarchicalValue(),
      regularizers.KLPenalty(coef=0.01),
    ),
    aggregation=TokenMean(),
  )
