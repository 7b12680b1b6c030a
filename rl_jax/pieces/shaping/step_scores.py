"""Token rewards where a process model lowers its opinion of a response."""

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import on_tokens, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class StepScores(Shaping):
  """r_t + scale (min(p_j, m_j) - m_j + bonus / n) at the end of step j of n.

  p_j is the score of the process model after step j, or by scheme='prod' the
  product of all scores to step j; m_j = min(start, p_1, ..., p_{j-1}): a step
  costs what it takes from the least value so far. Their sum is scale
  (min(start, p) - start + bonus). No gradient. The reward before stays on the
  last trained token.
  Source: OPRM, Edward-Sun/easy-to-hard math_utils/math_rl_utils.py; there each
  step's value is split between its two newline tokens.
  """

  start: float = ranged(0.5, 0.0, 1.0)  # scores above it cost nothing
  bonus: float = ranged(0.25, 0.0)  # of all steps together
  scale: float = ranged(1.0, 0.0)
  scheme: str = chosen('min', ('min', 'prod'))

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    p_BT = row_inputs.read(traj, 'step_score_BT')
    end_BT = (p_BT >= 0) & (traj.mask_BT > 0)
    if self.scheme == 'prod':
      p_BT = jnp.cumprod(jnp.where(end_BT, p_BT, 1.0), axis=1)
    least_BT = jax.lax.cummin(jnp.where(end_BT, p_BT, self.start), axis=1)
    least_BT = jnp.minimum(least_BT, self.start)
    first_B1 = jnp.full_like(least_BT[:, :1], self.start)
    before_BT = jnp.concatenate([first_B1, least_BT[:, :-1]], axis=1)
    count_B1 = end_BT.sum(axis=1, keepdims=True)
    share_B1 = safe_divide(self.bonus, count_B1.astype(p_BT.dtype))
    step_BT = jnp.where(end_BT, least_BT - before_BT + share_B1, 0.0)
    return CreditOut(on_tokens(reward, traj.mask_BT) + self.scale * step_BT)
