"""The discounted sum of later token rewards, without a value head."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class DiscountedReturn(Credit):
  """A_t = r_t + gamma A_{t+1} over trained tokens.

  Tokens outside the mask are skipped: the return after them passes through
  undiscounted, and rewards on them are dropped. A reward [B] is placed on the
  last trained token.
  Source: REINFORCE++; verl core_algos.py
  (compute_reinforce_plus_plus_outcome_advantage).
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per token

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    mask_BT = traj.mask_BT
    reward_BT = on_tokens(credit, mask_BT)
    chex.assert_equal_shape([reward_BT, mask_BT])
    kept_BT = mask_BT > 0
    decay_BT = jnp.where(kept_BT, self.gamma, 1.0)
    reward_BT = jnp.where(kept_BT, reward_BT, 0.0)
    total_BT = reverse_linear_scan(reward_BT, decay_BT)
    return CreditOut(jnp.where(kept_BT, total_BT, 0.0))
