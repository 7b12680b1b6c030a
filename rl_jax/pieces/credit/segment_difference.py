"""The difference of values at the two ends of a token's segment."""

import chex
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array


@piece
class SegmentDifference(Credit):
  """A_t = V(c_{j+1}) - V(c_j) for tokens c_j < t <= c_{j+1}.

  The value after the last cut is the reward of the response; tokens up to the
  first cut get 0, so the segments add up to R - V(first cut). Reads extras
  'cut_BC' and 'cut_value_BC' (see rollouts/wrappers/segment_values.py).
  Source: "Segment Policy Optimization", chain variant; AIFrameResearch/SPO
  math_episode_generator_with_mc_advantages.py.
  """

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    chex.assert_rank(credit, 1)
    cut_BC = row_inputs.read(traj, 'cut_BC')
    value_BC = row_inputs.read(traj, 'cut_value_BC')
    value_BC = jnp.where(cut_BC < row_inputs.NO_CUT, value_BC, credit[:, None])
    ends_BC = jnp.concatenate([value_BC, credit[:, None]], axis=1)
    position_T = jnp.arange(traj.mask_BT.shape[1])
    behind_BTC = cut_BC[:, None, :] < position_T[None, :, None]
    segment_BT = behind_BTC.sum(axis=2)  # 0: before the first cut

    def value(i: Array):
      return jnp.take_along_axis(ends_BC, i, axis=1)

    difference_BT = value(segment_BT) - value(jnp.maximum(segment_BT - 1, 0))
    return CreditOut(jnp.where(segment_BT > 0, difference_BT, 0.0))
