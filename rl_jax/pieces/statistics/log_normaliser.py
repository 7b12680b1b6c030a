"""The logarithm of the normaliser of another policy's logits."""

from typing import Any

import jax

from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class LogNormaliser(Statistic):
  """log sum_v exp(logits'_v) of the policy with that name, [B, T].

  The value of a place if logits are action values. The piece that needs it says
  in `policies` what the policy is.
  """

  policy: str

  @property
  def name(self) -> str:
    """The key of the statistic."""
    return f'log_normaliser_{self.policy}'

  @property
  def policies(self) -> dict[str, Any]:
    """The policy whose logits are read."""
    return {self.policy: Frozen()}

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    return jax.nn.logsumexp(chunk.others[self.policy], axis=-1)
