"""GDC: maximum likelihood of a target distribution, by importance weights."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import masked_mean, safe_divide
from rl_jax.pieces.ops.sequences import exact_log_ratio, row_credit, row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import static


@piece
class GDC(Loss):
  """l_t = -(P(y) / q(y) / Z) logp_t: minimises KL(p || pi) for p = P / Z.

    'constraint': P(y) = pi_ref(y) R, R the row's credit (1 or 0)
    'posterior':  P(y) = pi_ref(y) exp(R / temperature), the optimum of
                  KL-regularised reinforcement learning

  q is the policy that drew the rows (logp_old); Z is the mean weight of the
  trained rows, or 1 without `normalize`; with it weights are formed from
  log-ratios less their maximum, so that long rows do not overflow. Weights have
  no gradient. Leave the credit chain without a baseline.
  Source: "RL with KL penalties is better viewed as Bayesian inference";
  naver/gdc pointwise_gdc.py, whose weights are not normalised.
  """

  target: str = chosen('constraint', ('constraint', 'posterior'))
  # Reward per nat, of 'posterior'.
  temperature: float = ranged(1.0, 0.0, open_low=True)
  normalize: bool = static(default=False)
  aggregation: Any = None  # overrides the method's
  needs = ('logp_ref',)
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT, ref_BT = ctx.stats['logp'], traj.logp_ref_BT
    chex.assert_equal_shape([logp_BT, ref_BT, traj.logp_old_BT, traj.mask_BT])
    reward_B = row_credit(traj)
    log_prior_B = exact_log_ratio(ref_BT, traj.logp_old_BT, traj.mask_BT)
    shift, factor_B = jnp.float32(0.0), reward_B
    if self.target == 'posterior':
      log_prior_B += reward_B / self.temperature
      factor_B = jnp.ones_like(reward_B)
    live_B = row_weight(traj)
    used_B = (live_B > 0) & (factor_B != 0)
    # A row outside of the target weighs 0, however likely the reference is.
    log_prior_B = jnp.where(used_B, log_prior_B, 0.0)
    if self.normalize:
      shift = jnp.where(used_B, log_prior_B, -jnp.inf).max()
      shift = jnp.where(jnp.isfinite(shift), shift, 0.0)
      log_prior_B = jnp.where(used_B, log_prior_B - shift, 0.0)
    weight_B = jnp.exp(log_prior_B) * factor_B
    scaled = masked_mean(weight_B, live_B)
    if self.normalize:
      # Without a satisfied row there is nothing to learn and Z is 0.
      weight_B = safe_divide(weight_B, scaled)
    partition = scaled * jnp.exp(shift)
    return LossOut(
      -weight_B[:, None] * logp_BT, {'policy/partition': partition}
    )
