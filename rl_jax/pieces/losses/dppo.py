"""DPPO: a trust region in probability instead of probability ratio."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array


def _binary_kl(logp: Array, logp_other: Array) -> Array:
  """KL of the Bernoulli distributions of drawing this token, in nats."""
  # Below 1 by one float32 step: log(1 - p) and its partner stay finite.
  p = jnp.minimum(jnp.exp(logp), 1.0 - 2.0**-24)
  q = jnp.minimum(jnp.exp(logp_other), 1.0 - 2.0**-24)
  return p * (logp - logp_other) + (1 - p) * (jnp.log1p(-p) - jnp.log1p(-q))


@piece
class DPPO(Loss):
  """l_t = -sg[min(r_t, ratio_limit)] A_t logp_t, 0 outside the trust region.

    r_t = exp(logp_t - logp_old_t), p = exp(logp_t), q = exp(logp_old_t)
    'tv': dropped if A > 0 and p - q > high, or A < 0 and q - p > low
    'kl': dropped if p moved away from q in the direction of A and the binary
          KL q log(q / p) + (1 - q) log((1 - q) / (1 - p)) exceeds high or low

  A ratio bound drops rare tokens whose probability hardly changed and keeps
  likely ones whose probability changed much; a divergence does neither.
  Source: "Rethinking the Trust Region in LLM Reinforcement Learning" (DPPO),
  binary variants; verl core_algos.py (dppo_tv, dppo_kl).
  """

  divergence: str = chosen('tv', ('tv', 'kl'))
  low: float = ranged(0.15, 0.0)  # for A < 0; probability ('tv') or nats ('kl')
  high: float = ranged(0.15, 0.0)  # for A > 0
  ratio_limit: float = ranged(20.0, 0.0, open_low=True)
  aggregation: Any = None  # overrides the method's
  per_token = True
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT, adv_BT = ctx.stats['logp'], traj.advantages_BT
    old_BT = traj.logp_old_BT
    chex.assert_equal_shape([logp_BT, adv_BT, old_BT, traj.mask_BT])
    fixed_BT = jax.lax.stop_gradient(logp_BT)
    change_BT = log_ratio(fixed_BT, old_BT, traj.mask_BT)
    if self.divergence == 'tv':
      distance_BT = jnp.abs(jnp.exp(fixed_BT) - jnp.exp(old_BT))
    else:
      distance_BT = _binary_kl(old_BT, fixed_BT)
    above_BT = (adv_BT > 0) & (change_BT > 0) & (distance_BT > self.high)
    below_BT = (adv_BT < 0) & (change_BT < 0) & (distance_BT > self.low)
    outside_BT = above_BT | below_BT
    weight_BT = jnp.minimum(jnp.exp(change_BT), self.ratio_limit)
    weight_BT = jnp.where(outside_BT, 0.0, weight_BT)
    return LossOut(
      -weight_BT * adv_BT * logp_BT, {'policy/clip_fraction': outside_BT}
    )
