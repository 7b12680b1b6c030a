"""Log-probabilities of the drawn tokens under another policy."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class PolicyLogp(Statistic):
  """log pi'(y_t | x, y_<t) of the policy with that name, nats, [B, T].

  The piece that needs it says in `policies` what the policy is.
  """

  policy: str

  @property
  def name(self) -> str:
    """The key of the statistic."""
    return f'logp_{self.policy}'

  @property
  def policies(self) -> dict[str, Any]:
    """The policy whose logits are read."""
    return {self.policy: Frozen()}

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    logits_BCV = chunk.others[self.policy]
    picked_BC1 = jnp.take_along_axis(
      logits_BCV, chunk.token_BC[:, :, None], axis=-1
    )
    return picked_BC1[..., 0] - jax.nn.logsumexp(logits_BCV, axis=-1)
