"""Advantages with mean 0 and variance 1 over the tokens of the batch."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask, whiten
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class Whiten(Credit):
  """(A - mean) / sqrt(var + eps) over all trained tokens of the rollout.

  A row advantage [B] is broadcast first, so long responses count more. Once
  per rollout, before minibatches are made.
  Source: PPO for language models; verl torch_functional.py (masked_whiten),
  where masked tokens keep non-zero values.
  """

  eps: float = ranged(1e-8, 0.0, open_low=True)  # added to the variance
  ddof: int = ranged(1, 0, 1, static=True)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    mask_BT = loss_mask(traj) * traj.valid_B[:, None]
    if credit.ndim == 1:
      credit = jnp.broadcast_to(credit[:, None], mask_BT.shape)
    return CreditOut(whiten(credit, mask_BT, self.eps, ddof=self.ddof))
