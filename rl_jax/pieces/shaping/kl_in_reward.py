"""The divergence from the reference policy as a part of the reward."""

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.divergences import ESTIMATORS, kl_estimate
from rl_jax.pieces.ops.masking import masked_sum, on_tokens
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class KLInReward(Shaping):
  """r_t = 1[t = last] R - coef * k(logp_old, logp_ref)_t on policy tokens.

  No gradient. level 'token' gives rewards per token, the outcome on the last
  trained token; 'sequence' keeps [B], R - coef * sum_t k_t, for methods whose
  baseline compares whole rewards (RLOO).
  Source: InstructGPT; verl core_algos.py (apply_kl_penalty).
  """

  coef: float = ranged(0.01, 0.0)  # reward per nat
  estimator: str = chosen('k1', ESTIMATORS)
  level: str = chosen('token', ('token', 'sequence'))
  needs = ('logp', 'logp_ref')

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]; with level 'sequence' [B] -> [B].

    Raises:
      ValueError: level is 'sequence' and an earlier piece gave token rewards.
    """
    reward, traj = ctx.credit, ctx.traj
    kl_BT = kl_estimate(traj.logp_old_BT, traj.logp_ref_BT, self.estimator)
    if self.level == 'sequence':
      if reward.ndim != 1:
        raise ValueError('KLInReward.level = sequence needs rewards [B]')
      return CreditOut(
        reward - self.coef * masked_sum(kl_BT, traj.mask_BT, axis=1)
      )
    reward_BT = on_tokens(reward, traj.mask_BT)
    return CreditOut(reward_BT - self.coef * kl_BT * traj.mask_BT)
