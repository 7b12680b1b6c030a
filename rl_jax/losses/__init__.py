"""Policy and value losses: (stats, traj, key) -> (loss, metrics)."""

from rl_jax.losses.kl_cov import KLCov
from rl_jax.losses.negative_log_likelihood import NegativeLogLikelihood
from rl_jax.losses.ppo_clip import PPOClip
from rl_jax.losses.reinforce import Reinforce
from rl_jax.losses.value_clip import ValueClip

__all__ = [
  'KLCov',
  'NegativeLogLikelihood',
  'PPOClip',
  'Reinforce',
  'ValueClip',
]
