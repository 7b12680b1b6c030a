"""Only the tokens of highest entropy are trained."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class EntropyQuantile(Weight):
  """w_t = 1 where the token's entropy is among the largest `fraction`, else 0.

  The threshold is the entropy of rank max(floor(fraction * tokens), 1) among
  the trained tokens of the minibatch; equal entropies are kept together. The
  entropy is that of the policy that was scored, before the update. Dropped
  tokens stay in the loss's denominator. trl (top_entropy_quantile) keeps the
  entropies >= their quantile(1 - fraction), interpolated: mostly a token more.
  Source: "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective
  Reinforcement Learning for LLM Reasoning", equation 5.
  """

  # Of the trained tokens.
  fraction: float = ranged(0.2, 0.0, 1.0, open_low=True)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    chex.assert_equal_shape([traj.entropy_BT, traj.mask_BT])
    kept_BT = loss_mask(traj) > 0
    entropy_BT = jnp.where(kept_BT, traj.entropy_BT, -jnp.inf)
    count = jnp.maximum(jnp.floor(self.fraction * kept_BT.sum()), 1.0)
    # The count is traced, so the sorted entropies are indexed, not sliced.
    falling = jnp.sort(entropy_BT.ravel())[::-1]
    threshold = falling[count.astype(jnp.int32) - 1]
    chosen_BT = kept_BT & (entropy_BT >= threshold)
    return LossOut(
      chosen_BT.astype(jnp.float32),
      {
        'policy/chosen_fraction': chosen_BT,
        'policy/entropy_threshold': jnp.where(kept_BT.any(), threshold, 0.0),
      },
    )
