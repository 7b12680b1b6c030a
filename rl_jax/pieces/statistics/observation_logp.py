"""Log-probabilities of observation tokens under the policy."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import OBSERVATION_LOGP
from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class ObservationLogp(Statistic):
  """log pi(o_t | x, y_<t) of tokens of kind ENVIRONMENT, nats, [B, T].

  Of the distribution that policy tokens are drawn from. Unlike all other
  statistics it is 0 on trained tokens, and not on observations.
  """

  name = OBSERVATION_LOGP

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    picked_BC1 = jnp.take_along_axis(
      chunk.logits_BCV, chunk.token_BC[:, :, None], axis=-1
    )
    return picked_BC1[..., 0] - chunk.log_z_BC
