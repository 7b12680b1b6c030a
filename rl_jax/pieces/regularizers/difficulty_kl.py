"""APO (View-R1), DADS: less KL on the good samples of easier prompts."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.types import Array, Trajectories


@piece
class DifficultyKL(Regularizer):
  """l_t = coef * omega * k3(logp_t, logp_ref_t).

    omega = 1 - exp(-e p) where A > 0 and 0 < p < 1, else 1
    p     = share of right rows among the group's valid rows

  With difficulty d = 1 - p the weight falls as the prompt gets harder. The
  released code averages over a row's tokens and then over rows.
  Source: "Asymmetric Policy Optimization" (View-R1); Indolent-Kawhi/View-R1
  ppo_actor.py, models/loss.py.
  """

  coef: float = ranged(1e-3, 0.0)  # per nat
  correct_above: float = 0.5  # see row_inputs.right_B
  aggregation: Any = None  # overrides the method's
  needs = ('logp_ref',)
  min_group_size = 2

  def _weight(self, traj: Trajectories) -> Array:
    """omega [B, T]."""
    right_B = row_inputs.right_B(traj, self.correct_above)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    share_N = masked_mean(by_group(right_B, traj.group_size), valid_NG, axis=1)
    mixed_N = (share_N > 0) & (share_N < 1)
    omega_N = jnp.where(mixed_N, -jnp.expm1(-jnp.e * share_N), 1.0)
    omega_B = jnp.repeat(omega_N, traj.group_size)
    return jnp.where(traj.advantages_BT > 0, omega_B[:, None], 1.0)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT = ctx.stats['logp']
    chex.assert_equal_shape([logp_BT, traj.logp_ref_BT, traj.mask_BT])
    kl_BT = kl_estimate(logp_BT, traj.logp_ref_BT, 'k3')
    return LossOut(
      self.coef * self._weight(traj) * kl_BT, {'policy/kl_ref': kl_BT}
    )
