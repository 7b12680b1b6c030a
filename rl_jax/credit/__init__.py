"""Reward shaping and advantages: one chain, outcome reward to [B, T] credit."""

from rl_jax.credit.affine import Affine
from rl_jax.credit.batch_scale import BatchScale, NonzeroScale
from rl_jax.credit.best_of_group import BestOfGroup
from rl_jax.credit.discounted_return import DiscountedReturn
from rl_jax.credit.gae import GAE, LambdaReturn
from rl_jax.credit.group import GroupCenter, GroupScale, LeaveOneOut
from rl_jax.credit.kl_in_reward import KLInReward
from rl_jax.credit.length_baseline import LengthWeightedCenter
from rl_jax.credit.overlong import OverlongPenalty
from rl_jax.credit.whiten import Whiten

__all__ = [
  'Affine',
  'BatchScale',
  'BestOfGroup',
  'DiscountedReturn',
  'GAE',
  'GroupCenter',
  'GroupScale',
  'KLInReward',
  'LambdaReturn',
  'LeaveOneOut',
  'LengthWeightedCenter',
  'NonzeroScale',
  'OverlongPenalty',
  'Whiten',
]
