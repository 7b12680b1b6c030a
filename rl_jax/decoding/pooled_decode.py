"""Decoding from a pool of blocks of keys and values.

Rows take a block when they need one. Where none is free they wait for rows that
end, with their tokens, so that short responses leave room for long ones. Draws
depend only on counters: tokens are those of a cache for all (tier E2).
"""

from collections.abc import Sequence
import dataclasses
from typing import ClassVar, cast

from rl_jax import models
from rl_jax.decoding import decode
from rl_jax.decoding.slots import Slots
from rl_jax.models.block_pool import BlockPool


@dataclasses.dataclass(frozen=True)
class PooledDecoder(decode.Decoder):
  """Decoder whose rows share room for cache_tokens tokens."""

  cache_tokens: int
  grows: ClassVar[bool] = False

  def caches(
    self, prompts: Sequence[models.PromptCache], slots: int, places: int | None
  ) -> tuple[models.Cache, ...]:
    """The empty pools of the policies; all give their blocks alike."""
    del slots, places
    return tuple(
      models.make_pool(self.cfg, prompt, self.max_tokens, self.cache_tokens)
      for prompt in prompts
    )

  def advance(self, s: Slots) -> Slots:
    """One token for every slot that has a place for its last one."""
    going_W = s.going()
    pools, ready = zip(
      *(pool.assigned(going_W, s.step_W - 1) for pool in _pools(s)),
      strict=True,
    )
    s = self.fed(s.replace(caches=pools), ready[0], ready[0])
    going_W = s.going()
    return s.replace(caches=tuple(x.released(going_W) for x in _pools(s)))


def _pools(s: Slots) -> tuple[BlockPool, ...]:
  return cast(tuple[BlockPool, ...], s.caches)
