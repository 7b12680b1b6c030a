"""Tokens of a thought and those after it weigh differently in the loss."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class ThoughtWeight(Weight):
  """w_t = inside on tokens of extras['think_mask_BT'], else outside.

  With a rewritten prompt as the thought of a response, inside 0 trains only the
  answer, and outside 0 only what rewrites. Both 1 change nothing. Denominators
  keep all tokens.
  Source: ours, to take apart the joint training of "Parrot: Pareto-optimal
  Multi-Reward Reinforcement Learning Framework for Text-to-Image Generation".
  """

  inside: float = ranged(1.0, 0.0)
  outside: float = ranged(1.0, 0.0)
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    think_BT = row_inputs.read(ctx.traj, 'think_mask_BT') > 0
    return LossOut(jnp.where(think_BT, self.inside, self.outside), {})
