"""OTB: a group baseline for every position, weighted by gradient norms."""

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, masked_mean, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.pieces.statistics.collision import Collision
from rl_jax.types import Array, Trajectories


@piece
class OptimalTokenBaseline(Credit):
  """A_kt = G_kt - b_t, b_t = sum_j G_jt W_jt / sum_j W_jt over the group.

  W_jt = sum over trained tokens s <= t of 1 - 2 pi(y_s) + sum_v pi(v)^2, which
  is the squared norm of the gradient of log pi(y_s) in the logits: the variance
  of the update from token t is least with such a baseline. The sums are over
  valid rows with a trained token at position t of the response; of a row that
  is the only one there b_t = 0, and so after the end of all others. pi is the
  sampling policy; no gradient. G is the return [B], the same at all tokens, or
  what a piece before (DiscountedReturn) gives tokens. 0 for fewer than two
  valid rows.
  Source: "The Optimal Token Baseline: Variance Reduction for Long-Horizon
  LLM-RL"; verl core_algos.py (optimal_token_baseline), which adds 1e-8 to
  sum_j W_jt. Ours: nothing is added, and equal G give exactly 0 where rows can
  be compared.
  """

  needs = ('logp', Collision())
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    mask_BT = traj.mask_BT * traj.valid_B[:, None]
    if credit.ndim == 1:
      credit = jnp.broadcast_to(credit[:, None], mask_BT.shape)

    def group(x: Array):
      return by_group(x, traj.group_size)

    return_NGT, mask_NGT = group(credit), group(mask_BT)
    weight_NGT = group(_path_weight(traj))
    # Taking one return off first keeps equal ones exactly at 0.
    held_NGT = jnp.where(mask_NGT > 0, return_NGT, jnp.inf)
    low_N1T = held_NGT.min(1, keepdims=True)
    above_NGT = jnp.where(mask_NGT > 0, return_NGT - low_N1T, 0.0)
    mean_N1T = masked_mean(above_NGT, mask_NGT * weight_NGT, 1, keepdims=True)
    alone_N1T = (mask_NGT > 0).sum(1, keepdims=True) < 2
    credit_NGT = jnp.where(alone_N1T, return_NGT, above_NGT - mean_N1T)
    several_N11 = (group(traj.valid_B) > 0).sum(1)[:, None, None] >= 2
    return CreditOut(
      ungroup(jnp.where((mask_NGT > 0) & several_N11, credit_NGT, 0.0))
    )


def _path_weight(traj: Trajectories) -> Array:
  """W [B, T], the sum up to each token."""
  collision_BT = row_inputs.read(
    traj, Collision.name, 'log sum_v pi(v)^2 of the sampling policy'
  )
  kept_BT = traj.mask_BT > 0
  taken_BT = jnp.exp(jnp.where(kept_BT, traj.logp_old_BT, 0.0))
  twice_BT = jnp.exp(jnp.where(kept_BT, collision_BT, 0.0))
  # At least (1 - pi)^2, but for rounding.
  norm_BT = jnp.maximum(1.0 - 2.0 * taken_BT + twice_BT, 0.0)
  return jnp.cumsum(norm_BT * traj.mask_BT, axis=1)
