"""PPO-max's switch for advantages that stay within a bound."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class ClipAdvantage(Credit):
  """clip(A, -limit, limit), by row or by token.

  Source: "Secrets of RLHF in Large Language Models Part I: PPO"; OpenLMLab/
  MOSS-RLHF ppo_trainer.py, after whitening.
  """

  limit: float = ranged(0.5, 0.0, open_low=True)  # in units of the advantage

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B] or [B, T] -> [B, T]."""
    credit = ctx.credit
    return CreditOut(jnp.clip(credit, -self.limit, self.limit))
