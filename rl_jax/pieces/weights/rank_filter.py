"""PF-PPO: weights by the rank of the reward in its group."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, safe_divide, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class RankFilter(Weight):
  """n w(rank) / sum of w over the group's n valid rows, by unshaped reward.

    w = best for the largest reward, worst for the smallest, else middle

  The expectation of drawing n rows with probability proportional to w; equal
  rewards share the mean w of their ranks. (0.4, 0.1, 0.1) is best-random,
  (1, 0, 1) best-worst, (1, 0, 0) best of n.
  Source: "Policy Filtration in RLHF to Fine-Tune LLM for Code Generation";
  swtheing/PF-PPO-RLHF replay_buffer.py, which resamples instead.
  """

  best: float = ranged(1.0, 0.0)
  middle: float = ranged(0.0, 0.0)
  worst: float = ranged(1.0, 0.0)
  min_group_size = 2

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    reward_NG = by_group(traj.reward_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size) > 0
    count_N1 = valid_NG.sum(1, keepdims=True).astype(jnp.float32)
    # [N, G, G]: is the reward of the second row larger, or equal?
    rival_NGG = valid_NG[:, None, :]
    above_NG = (
      rival_NGG & (reward_NG[:, None, :] > reward_NG[:, :, None])
    ).sum(2)
    tied_NG = (
      rival_NGG & (reward_NG[:, None, :] == reward_NG[:, :, None])
    ).sum(2)
    first_NG = (above_NG == 0).astype(jnp.float32)
    last_NG = (above_NG + tied_NG == count_N1).astype(jnp.float32)
    rest_NG = jnp.maximum(tied_NG - first_NG - last_NG, 0.0)
    total_NG = first_NG * self.best + last_NG * self.worst
    total_NG += rest_NG * self.middle
    weight_NG = jnp.where(valid_NG, safe_divide(total_NG, 1.0 * tied_NG), 0.0)
    sum_N1 = weight_NG.sum(1, keepdims=True)
    factor_B = ungroup(safe_divide(weight_NG * count_N1, sum_N1))
    factor_BT = jnp.broadcast_to(factor_B[:, None], traj.mask_BT.shape)
    return LossOut(factor_BT, {'policy/filtered_fraction': factor_BT == 0})
