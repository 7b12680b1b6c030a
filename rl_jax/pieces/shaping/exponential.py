"""Rewards bent for an inference procedure: best of n, or worst of n."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class Exponential(Shaping):
  """sign(t) exp(t R - max(t, 0)): order is kept, one end is stretched.

  For R in [0, 1], a win rate. t > 0 trains for the best of n samples, t < 0
  for the worst of n; the factor exp(-max(t, 0)) keeps values within [-1, 1].
  Source: "InfAlign: Inference-aware language model alignment" (sign and form by
  secondary sources; t = 10 and -10 are unverified, and checked in a tabular
  policy: with equal KL each is best for its own inference procedure).
  """

  t: float = ranged(10.0, -50.0, 50.0)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError for t = 0, which makes every reward 0."""
    if self.t == 0:
      raise ValueError('Exponential.t = 0 makes every reward 0: leave it out')

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B = ctx.credit
    t = jnp.asarray(self.t)
    return CreditOut(jnp.sign(t) * jnp.exp(t * reward_B - jnp.maximum(t, 0.0)))
