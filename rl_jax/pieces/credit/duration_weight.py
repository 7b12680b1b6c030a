"""Advantages times how long their actions took."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import safe_divide
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class DurationWeight(Credit):
  """A_t <- A_t d_k / mean d, d_k the duration of the turn of token t.

  The mean is over all turns of valid rows of the batch, so that the weights
  average to 1. Where episodes are collected for a fixed time, an action is seen
  about pi(a) / d(a) times, and the weight takes the durations out again.
  Without a record of durations nothing changes.
  Rollouts of this package are synchronous and see an action pi(a) times, so
  that the weight would favour slow actions: training refuses it, but after
  rollouts.wrappers.WallClock. It also serves those who call `make_batch` with
  episodes that a time limit has chosen.
  Source: "Reinforcement Learning for Machine Learning Engineering Agents";
  from notes on the paper, its repository was not readable.
  """

  def check(self, context: CheckContext) -> None:
    """Raises ValueError unless rows are chosen as in a fixed time."""
    if context.rollout is None or context.method.wrapper.by_time:
      return
    raise ValueError(
      'method.credit: DurationWeight undoes how a collector that stops after a '
      'fixed time samples (an action of duration d is seen pi / d times). '
      'Rollouts here are synchronous and see it pi times, so that slow actions '
      'would be favoured: take DurationWeight out of method.credit, or set '
      'method.rollout=WallClock()'
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    credit_BT = reward if reward.ndim == 2 else reward[:, None]
    advantage_BT = jnp.where(traj.mask_BT > 0, credit_BT, 0.0)
    if traj.turns is None or traj.turns.duration_BK is None:
      return CreditOut(advantage_BT)
    view, duration_BK = turn_view(traj), traj.turns.duration_BK
    valid_B1 = (traj.valid_B > 0).astype(jnp.float32)[:, None]
    counted_BK = view.played_BK * valid_B1
    mean = safe_divide((counted_BK * duration_BK).sum(), counted_BK.sum())
    return CreditOut(
      advantage_BT * view.on_tokens(safe_divide(duration_BK, mean))
    )
