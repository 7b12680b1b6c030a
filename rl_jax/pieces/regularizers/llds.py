"""LLDS: a penalty where tokens with A >= 0 have become less likely."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import masked_sum
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.sequences import run_sum
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class LLDS(Regularizer):
  """l_t = coef * gate * max(0, logp_old_t - logp_t) on tokens with A_t >= 0.

    gate 'action':   1 if the sum of logp_old - logp over the token's action is
                     positive, no gradient
    gate 'response': the same sum over all such tokens of the row

  An action is a maximal run of trained tokens with A >= 0; an observation ends
  it. Rows with A = 0 are included, as in the code. The term is 0 in the first
  update of a rollout. The hinge has gradient 0 at 0.
  Source: "On GRPO Collapse in Search-R1: The Lazy Likelihood-Displacement Death
  Spiral"; its repository's dp_actor.py.
  """

  coef: float = ranged(0.2, 0.0)  # per nat
  gate: str = chosen('action', ('action', 'response'))
  aggregation: Any = None  # overrides the method's

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    kept_BT = (traj.mask_BT > 0) & (adv_BT >= 0)
    kept_BT = kept_BT.astype(jnp.float32)
    fall_BT = -log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT) * kept_BT
    if self.gate == 'action':
      total_BT = run_sum(fall_BT, kept_BT)
    else:
      total_B1 = masked_sum(fall_BT, kept_BT, axis=1, keepdims=True)
      total_BT = jnp.broadcast_to(total_B1, fall_BT.shape)
    held_BT = (total_BT > 0) & (fall_BT > 0)  # no gradient
    penalty_BT = jnp.where(held_BT, fall_BT, 0.0)
    return LossOut(self.coef * penalty_BT, {'policy/displacement': penalty_BT})
