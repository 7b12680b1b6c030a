"""Constrained RLHF: learned multipliers hold rewards at their thresholds.

Paper: Moskovitz et al., "Confronting Reward Model Overoptimization with
  Constrained RLHF", 2023.
Change: against PPO, the advantage is (K - sum phi) A_kl + sum phi_i A_i, and
  phi_i rises while reward component i is below its threshold.
Defaults: mu-PPO (sigmoid), lagrange rate 0.1, momentum 0.1, gradient at most
  0.5 (script), gamma 0.99, lambda 0.95, coefficients 0.5 of the components'
  values and 0.2 of the divergence's (code); thresholds 0.9 for outcome and
  format are ours. Needs model.value_head=True and model.num_values=3.
  constrained_rlhf@group_means has group means for critics.
Pieces: Lagrangian(components=('outcome', 'format'), thresholds=(0.9, 0.9),
  baseline='values', gamma=0.99, lam=0.95, squash='sigmoid', learning_rate=0.1,
  momentum=0.1, max_gradient=0.5, eps=1e-08); PPOClip(clip_low=0.2,
  clip_high=0.2); ValueRegression(coefs=(0.5, 0.5, 0.2)); TokenMean();
  ComponentReturns(components=('outcome', 'format'), gamma=0.99, lam=0.95)
Headline: unverified.
Evidence: verified in code (tedmoskovitz/ConstrainedRL4LMs constrained_ppo.py).
Paper and code: its search of thresholds by Nelder-Mead, which trains a policy
  for every point, is experiments.tools.search. The unsquashed branch of the
  code drops the first multiplier.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=constrained_rlhf --set=model.path=runs/chain_warm
  --set=model.value_head=True --set=model.num_values=3
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'
VARIANTS = {
  'group_means': (
    "credit.Lagrangian.baseline='group'",
    'losses.ValueRegression=null',
    'value_target=null',
  ),
}


def get_method() -> Method:
  """PPO clip on the Lagrangian mix of advantages, a critic for each."""
  return Method(
    credit=(credit.Lagrangian(baseline='values'),),
    value_target=credit.ComponentReturns(),
    losses=(losses.PPOClip(), losses.ValueRegression()),
    aggregation=TokenMean(),
  )
