"""TW-GRPO: how far the distributions of a group lie apart."""

import jax.numpy as jnp

from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class GroupDivergence(Statistic):
  """mean_k sum_v exp(u) - u - 1, u = mean_j logp_j(v) - logp_k(v), [B, T].

  j, k are the rows of a group at the same place; the value is the same for all
  of them. Rows that have ended count as uniform; |u| <= 11.
  Source: "Reinforcing Video Reasoning with Focused Thinking" (TW-GRPO);
  grpo_trainer.py.
  """

  name = 'group_divergence'
  by_place = True

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    (B, C, V), N = chunk.logits_BCV.shape, chunk.group_tokens_NU.shape[0]
    live_BC1 = chunk.mask_BC[:, :, None] > 0
    logp_BCV = jnp.where(live_BC1, chunk.logp_BCV, -jnp.log(float(V)))
    logp_NGCV = logp_BCV.reshape(N, B // N, C, V)
    u_NGCV = logp_NGCV.mean(axis=1, keepdims=True) - logp_NGCV
    u_NGCV = jnp.clip(u_NGCV, -11.0, 11.0)
    divergence_NC = (jnp.expm1(u_NGCV) - u_NGCV).sum(axis=-1).mean(axis=1)
    return jnp.repeat(divergence_NC, B // N, axis=0)
