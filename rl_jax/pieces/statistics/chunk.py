"""The input of a statistic: the logits of some tokens."""

from collections.abc import Mapping

from flax import struct
import jax

from rl_jax.types import Array


@struct.dataclass(kw_only=True)
class Chunk:
  """Logits of C places of all B rows; no [B, T, V] array ever exists.

  It is the argument of statistics, see `rl_jax.pieces.roles.Statistic`.
  """

  logits_BCV: Array  # at the sampling temperature, after transforms
  token_BC: Array  # int32, those that were drawn
  mask_BC: Array  # 1 on trained tokens
  group_tokens_NU: Array  # int32, all response tokens of a group, U = G * T
  others: Mapping[str, Array]  # logits [B, C, V] of other policies
  # Outputs of value heads [B, C, H] by policy, '' the trained one.
  values: Mapping[str, Array] = struct.field(default_factory=dict)

  @property
  def log_z_BC(self) -> Array:
    """The logarithm of the normaliser of the logits."""
    return jax.nn.logsumexp(self.logits_BCV, axis=-1)

  @property
  def logp_BCV(self) -> Array:
    """Log-probabilities of all tokens, in nats."""
    return self.logits_BCV - self.log_z_BC[:, :, None]
