"""EGPO (FunRL): a bounded entropy bonus on the advantage."""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class EntropyShaping(Credit):
  """A_k + coef * clip(H_k, -|A_k| / alpha, |A_k| / alpha).

  H_k is the mean token entropy of the sampling policy over the response, or
  over extras['think_mask_BT'] with span 'think'; no gradient. The sign of A
  is kept if coef < alpha.
  Source: "Exploring Superior Function Calls via Reinforcement Learning"
  (FunRL, later EGPO), from a verl reproduction plan.
  """

  coef: float = ranged(0.4, 0.0)  # advantage per nat
  alpha: float = ranged(2.0, 0.0, open_low=True)
  span: str = chosen('response', ('response', 'think'))
  needs = ('entropy',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    mask_BT = traj.mask_BT
    if self.span == 'think':
      mask_BT = mask_BT * (row_inputs.read(traj, 'think_mask_BT') > 0)
    entropy_B = masked_mean(traj.entropy_BT, mask_BT, axis=1)
    bound_B = jnp.abs(credit_B) / self.alpha
    return CreditOut(
      credit_B + self.coef * jnp.clip(entropy_B, -bound_B, bound_B)
    )
