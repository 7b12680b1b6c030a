"""Reward shaping and advantages: one chain, outcome reward to [B, T] credit."""

from rl_jax.credit.gae import GAE, LambdaReturn
from rl_jax.credit.group import GroupCenter, GroupScale, LeaveOneOut
from rl_jax.credit.kl_in_reward import KLInReward
from rl_jax.credit.overlong import OverlongPenalty
from rl_jax.credit.whiten import Whiten

__all__ = [
  'GAE',
  'GroupCenter',
  'GroupScale',
  'KLInReward',
  'LambdaReturn',
  'LeaveOneOut',
  'OverlongPenalty',
  'Whiten',
]
