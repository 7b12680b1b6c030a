"""Constrained RLHF: learned multipliers hold rewards at their thresholds.

Paper: Moskovitz et al., "Confronting Reward Model Overoptimization with
  Constrained RLHF", 2023.
Change: against GRPO, the advantage is (K - sum phi) A_kl + sum phi_i A_i, and
  phi_i rises while reward component i is below its threshold.
Defaults: mu-PPO (sigmoid), lagrange rate 0.1, momentum 0.1, gradient at most
  0.5 (script); thresholds 0.9 for outcome and format are ours.
Pieces: Lagrangian(components=('outcome', 'format'), thresholds=(0.9, 0.9),
  squash='sigmoid', learning_rate=0.1, momentum=0.1, max_gradient=0.5,
  eps=1e-08); PPOClip(clip_low=0.2, clip_high=0.2); TokenMean()
Headline: unverified.
Evidence: verified in code (tedmoskovitz/ConstrainedRL4LMs constrained_ppo.py).
Paper and code: the code has N + 1 value heads, with GAE for each component and
  for the KL of each token; here are group means, which need none. Its search of
  thresholds by Nelder-Mead, which trains a policy for every point, is not here.
  The unsquashed branch of the code drops the first multiplier.
Command: python -m experiments.train --config=configs/countdown.py
  --method=constrained_rlhf
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """PPO clip on the Lagrangian mix of advantages."""
  return Method(
    credit=(credit.Lagrangian(),),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
