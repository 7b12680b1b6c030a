"""D2PO's score: earlier tokens of a response count more."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import masked_sum
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, Score
from rl_jax.types import Array


@piece
class DecayedRatio(Score):
  """s = beta sum_t decay^k_t (logp_t - logp_ref_t), k trained tokens before t.

  decay 1 is DPO. Source: D2PO, "Earlier Tokens Contribute More: Learning Direct
  Preference Optimization From Temporal Decay Perspective" (reconstructed from
  its abstract and a summary; the default decay is unverified).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)  # per nat
  decay: float = ranged(0.98, 0.0, 1.0, open_low=True)  # gamma of the paper
  needs = ('logp_ref',)

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    traj = ctx.traj
    before_BT = jnp.cumsum(traj.mask_BT, axis=1) - traj.mask_BT
    ratio_BT = (ctx.stats['logp'] - traj.logp_ref_BT) * self.decay**before_BT
    return self.beta * masked_sum(ratio_BT, traj.mask_BT, axis=1)
