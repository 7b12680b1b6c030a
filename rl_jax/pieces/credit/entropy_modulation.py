"""EMPG: advantages scaled by the entropy of the step, plus a bonus."""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import (
  is_rounding,
  masked_center,
  masked_max,
  masked_mean,
  masked_min,
  safe_divide,
)
from rl_jax.pieces.ops.segments import SOURCES, segment_means, segment_starts
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class EntropyModulation(Credit):
  """A g(H_s) + zeta f(H_{s+1}) on every token of step s, minus the step mean.

    H_s = mean token entropy of step s, scaled to [0, 1] over the batch's steps
    g = exp(-k H_s) / mean over steps of exp(-k H)
    f = exp(-k_future H_{s+1}), 0 on the last step

  No gradient; the steps of valid, trained rows count. Steps are turns, or
  begin where extras['segment_start_BT'] says so.
  Source: "Harnessing Uncertainty: Entropy-Modulated Policy Gradients for
  Long-Horizon LLM Agents", from a digest; the constants are not published
  there.
  """

  k: float = ranged(1.0, 0.0)
  k_future: float = ranged(1.0, 0.0)
  zeta: float = ranged(0.1, 0.0)  # advantage
  eps: float = ranged(1e-8, 0.0, open_low=True)  # nats
  segments: str = chosen('turns', SOURCES)
  needs = ('entropy',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit_B, traj = ctx.per_row()
    start_BT = segment_starts(traj, self.segments)
    # Column s of entropy_BS belongs to step s of the row.
    # The smallest is taken off first, so that equal entropies have equal means.
    least = masked_min(traj.entropy_BT, traj.mask_BT)
    entropy_BS, tokens_BS, step_BT = segment_means(
      traj.entropy_BT - least, start_BT, traj.mask_BT
    )
    live_B1 = (traj.valid_B * (traj.weight_B != 0))[:, None]
    live_BS = ((tokens_BS > 0) & (live_B1 > 0)).astype(jnp.float32)
    low, high = masked_min(entropy_BS, live_BS), masked_max(entropy_BS, live_BS)
    span = jnp.where(is_rounding(high - low, high + least), 0.0, high - low)
    excess_BS = jnp.minimum(entropy_BS - low, span)
    scaled_BS = jnp.where(live_BS > 0, excess_BS / (span + self.eps), 0.0)
    gain_BS = jnp.exp(-self.k * scaled_BS)
    gain_BS = safe_divide(gain_BS, masked_mean(gain_BS, live_BS))
    clear_BS = live_BS * jnp.exp(-self.k_future * scaled_BS)
    future_BS = jnp.pad(clear_BS[:, 1:], ((0, 0), (0, 1)))
    credit_BS = credit_B[:, None] * gain_BS + self.zeta * future_BS
    credit_BS = masked_center(credit_BS, live_BS)
    return CreditOut(jnp.take_along_axis(credit_BS, step_BT, axis=1))
