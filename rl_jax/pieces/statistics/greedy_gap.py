"""The distance of a token below the most likely one."""

from typing import Any

import jax.numpy as jnp

from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class GreedyGap(Statistic):
  """log pi(a) - max_v log pi(v) of the policy, in nats, never above 0, [B, T].

  a: the token that was drawn, or with `favourite` of the reference the token
  that is most likely under the reference at that place.
  """

  favourite: str = ''  # 'reference', or the drawn token

  @property
  def name(self) -> str:
    """The key of the statistic."""
    return f'{self.favourite or "drawn"}_gap'

  @property
  def policies(self) -> dict[str, Any]:
    """The policy that chooses a."""
    return {self.favourite: Frozen()} if self.favourite else {}

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    token_BC = chunk.token_BC
    if self.favourite:
      token_BC = jnp.argmax(chunk.others[self.favourite], axis=-1)
    picked_BC1 = jnp.take_along_axis(
      chunk.logits_BCV, token_BC[..., None], axis=-1
    )
    return picked_BC1[..., 0] - chunk.logits_BCV.max(axis=-1)
