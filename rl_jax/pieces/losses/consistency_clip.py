"""COPO: a second, prompt-level advantage blended in by answer entropy."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.clusters import answer_entropy, cluster_mass, same_answer
from rl_jax.pieces.ops.masking import (
  by_group,
  is_rounding,
  masked_center,
  masked_max,
  masked_mean,
  masked_min,
  masked_var,
  safe_sqrt,
)
from rl_jax.pieces.ops.ratios import clipped_surrogate, is_clipped, log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array, Trajectories


@piece
class ConsistencyClip(Loss):
  """w clip(A) + (1 - w) clip(B), both terms the clipped surrogate of PPO.

    A        the advantages of the credit chain (local)
    B_i    = (R_i - mean R) / (std R + eps), R_i the mean reward of prompt i,
             mean and std (ddof 1) over the prompts of the minibatch
    w_i    = sigmoid(gamma (H_i - rho)), H_i the entropy in nats of the
             frequencies of the answers of prompt i

  No gradient through w. Reads extras['cluster_id_B'] and the unshaped reward.
  Two surrogates, not one of a mixed advantage: where A and B differ in sign
  the clip cuts them apart.
  Source: "COPO: Consistency-Aware Policy Optimization", from two reports that
  quote the formulas.
  """

  gamma: float = ranged(20.0, 0.0)  # per nat
  rho: float = 1.5  # nats; log(group_size) must exceed it to favour A
  eps: float = ranged(1e-6, 0.0, open_low=True)  # in units of the reward
  clip_low: float = ranged(0.2, 0.0, 1.0)
  clip_high: float = ranged(0.2, 0.0)
  aggregation: Any = None  # overrides the method's
  min_group_size = 2
  off_policy = True

  def _blend(self, traj: Trajectories) -> tuple[Array, Array]:
    """(w, B), each [N]."""
    valid_NG = by_group(traj.valid_B, traj.group_size)
    same_NGG, _ = same_answer(traj, merge_missing=False)
    entropy_N = answer_entropy(*cluster_mass(valid_NG, same_NGG))
    weight_N = jax.nn.sigmoid(self.gamma * (entropy_N - self.rho))
    reward_NG = by_group(traj.reward_B, traj.group_size)
    # The smallest is taken off first, so that equal rewards have equal means.
    low = masked_min(reward_NG, valid_NG)
    mean_N = masked_mean(reward_NG - low, valid_NG, axis=1)
    live_N = (valid_NG.sum(1) > 0).astype(jnp.float32)
    std = safe_sqrt(masked_var(mean_N, live_N, ddof=1))
    flat = is_rounding(std, jnp.abs(low) + masked_max(mean_N, live_N))
    apart_N = masked_center(mean_N, live_N) / (std + self.eps)
    return weight_N, jnp.where(flat, 0.0, apart_N)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    weight_N, global_N = self._blend(traj)
    weight_B1 = jnp.repeat(weight_N, traj.group_size)[:, None]
    global_B1 = jnp.repeat(global_N, traj.group_size)[:, None]
    global_BT = global_B1 * traj.mask_BT
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    limits = (self.clip_low, self.clip_high)
    local_BT = clipped_surrogate(ratio_BT, adv_BT, *limits)
    shared_BT = clipped_surrogate(ratio_BT, global_BT, *limits)
    return LossOut(
      weight_B1 * local_BT + (1.0 - weight_B1) * shared_BT,
      {
        'policy/clip_fraction': is_clipped(ratio_BT, adv_BT, *limits),
        'policy/local_weight': weight_N.mean(),
      },
    )
