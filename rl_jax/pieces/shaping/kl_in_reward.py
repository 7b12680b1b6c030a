"""The divergence from the reference policy as a part of the reward."""

from typing import ClassVar

from flax import struct

from rl_jax.checks import check_choice, check_range
from rl_jax.pieces.ops.divergences import ESTIMATORS, kl_estimate
from rl_jax.pieces.ops.masking import at_last_token, masked_sum
from rl_jax.types import Array, Trajectories, static


@struct.dataclass(kw_only=True)
class KLInReward:
  """r_t = 1[t = last] R - coef * k(logp_old, logp_ref)_t on policy tokens.

  No gradient. level 'token' gives rewards per token, the outcome on the last
  trained token; 'sequence' keeps [B], R - coef * sum_t k_t, for methods whose
  baseline compares whole rewards (RLOO).
  Source: InstructGPT; verl core_algos.py (apply_kl_penalty).
  Raises ValueError for a negative coef, an unknown estimator or level.
  """

  coef: float = 0.01  # reward per nat, >= 0
  estimator: str = static(default='k1')
  level: str = static(default='token')
  role: ClassVar[str] = 'shaping'
  needs: ClassVar[tuple[str, ...]] = ('logp', 'logp_ref')

  def __post_init__(self):
    check_range(self, 'coef', 0.0)
    check_choice(self, 'estimator', ESTIMATORS)
    check_choice(self, 'level', ('token', 'sequence'))

  def __call__(self, reward: Array, traj: Trajectories) -> Array:
    """[B] or [B, T] -> [B, T]; with level 'sequence' [B] -> [B].

    Raises:
      ValueError: level is 'sequence' and an earlier piece gave token rewards.
    """
    kl_BT = kl_estimate(traj.logp_old_BT, traj.logp_ref_BT, self.estimator)
    if self.level == 'sequence':
      if reward.ndim != 1:
        raise ValueError('KLInReward.level = sequence needs rewards [B]')
      return reward - self.coef * masked_sum(kl_BT, traj.mask_BT, axis=1)
    if reward.ndim == 1:
      reward = at_last_token(reward, traj.mask_BT)
    return reward - self.coef * kl_BT * traj.mask_BT
