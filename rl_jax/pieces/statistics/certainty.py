"""Self-certainty: how far a distribution is from the uniform one."""

import jax.numpy as jnp

from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class Certainty(Statistic):
  """KL(uniform || pi) = -1/V sum_v log(V pi(v)), in nats, [B, T].

  Source: backprop07/Self-Certainty confidence_list.py.
  """

  name = 'self_certainty'

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    V = chunk.logits_BCV.shape[-1]
    mean_logp_BC = jnp.mean(chunk.logits_BCV, axis=-1) - chunk.log_z_BC
    return -mean_logp_BC - jnp.log(float(V))
