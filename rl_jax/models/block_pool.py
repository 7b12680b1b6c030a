"""Keys and values of responses in blocks that all rows share.

A row holds blocks for the tokens that it has, not for all that it may get. A
step attends by block, each with the queries of the row that owns it
(attention.attend_response): nothing is gathered, and the memory that is read is
the pool, however long a response may become.
"""

from typing import Any, Self

from flax import struct
import jax.numpy as jnp

from rl_jax.models import kv_cache, rope
from rl_jax.types import Array

BLOCK = 64  # tokens
FREE = 2**30  # owner of a block that no row holds


class BlockPool(kv_cache.Cache, kw_only=True):
  """M blocks of C tokens: keys [M, J, K, C] and values [M, J, C, K] a layer.

  owner: the slot of a block's row, or FREE. first: its first token. row_blocks:
  that a row of full length holds; M is at least as many.
  """

  owner_M: Array
  first_M: Array
  row_blocks: int = struct.field(pytree_node=False)

  @property
  def size(self) -> int:
    """C."""
    return self.k_BJKT[0][0].shape[-1]

  def take(self, slot_W: Array, cfg: Any, at_rest: bool = False) -> Self:
    """The pool of the given slots; no more blocks than they can fill.

    See kv_cache.taken.
    """
    held_MW = self.owner_M[:, None] == slot_W[None]
    owner_M = jnp.where(held_MW.any(axis=1), held_MW.argmax(axis=1), FREE)
    most = slot_W.shape[0] * self.row_blocks
    if most >= owner_M.shape[0]:
      return self.replace(owner_M=owner_M)
    kept = jnp.argsort(owner_M == FREE, stable=True)[:most]
    k, v = kv_cache.taken(self.k_BJKT, self.v_BJTK, kept, cfg, at_rest)
    return self.replace(
      k_BJKT=k,
      v_BJTK=v,
      owner_M=owner_M[kept],
      first_M=self.first_M[kept],
    )

  def assigned(
    self, going_W: Array, token_W: Array
  ) -> tuple['BlockPool', Array]:
    """(blocks for rows whose token begins one, slots whose token has a place).

    Where too few are free rows wait. The row with most tokens never does: the
    blocks up to its full length are kept for it, and when it ends they suffice
    for any other one.
    """
    slots = jnp.arange(token_W.shape[0])
    needs_W = going_W & (token_W % self.size == 0)
    leads_W = slots == jnp.where(going_W, token_W, -1).argmax()
    held = -(-jnp.where(leads_W, token_W, 0).sum() // self.size)
    free_M = self.owner_M == FREE
    spare = free_M.sum() - (self.row_blocks - held)
    # The leading row takes its own block after those of the others.
    others_W = needs_W & ~leads_W
    rank_W = jnp.cumsum(others_W) - 1
    given_W = others_W & (rank_W < spare)
    rank_W = jnp.where(leads_W, given_W.sum(), rank_W)
    given_W |= needs_W & leads_W
    order_M = jnp.argsort(~free_M, stable=True)
    none = free_M.shape[0]
    block_W = jnp.where(given_W, order_M.at[rank_W].get(mode='clip'), none)

    def put(x, value_W):
      return x.at[block_W].set(value_W, mode='drop')

    pool = self.replace(
      owner_M=put(self.owner_M, slots), first_M=put(self.first_M, token_W)
    )
    return pool, going_W & (~needs_W | given_W)

  def released(self, going_W: Array) -> 'BlockPool':
    """Frees the blocks of rows that have ended."""
    held_M = going_W.at[self.owner_M].get(mode='fill', fill_value=False)
    return self.replace(owner_M=jnp.where(held_M, self.owner_M, FREE))

  def step(self, clock: Array, step_B: Array) -> kv_cache.PoolStep:
    """See kv_cache.PoolStep; clock is not used."""
    del clock
    column_B = step_B % self.size
    slots = jnp.arange(step_B.shape[0])
    here_MB = self.owner_M[:, None] == slots[None]
    here_MB &= self.first_M[:, None] == (step_B - column_B)[None]
    none = self.owner_M.shape[0]
    block_B = jnp.where(here_MB.any(axis=0), here_MB.argmax(axis=0), none)
    column_M = jnp.where(here_MB, column_B[None], self.size).min(axis=1)
    # No row sees a token of a free block.
    now_M = step_B.at[self.owner_M].get(mode='fill', fill_value=0)
    token_MC = self.first_M[:, None] + jnp.arange(self.size)[None]
    age_MC = now_M[:, None] - token_MC
    return kv_cache.PoolStep(
      block_B, column_B, self.owner_M, column_M, age_MC > 0, age_MC
    )


def put(
  x: Array,
  new_B: Array,
  at: kv_cache.PoolStep,
  axis: int,
  layer: Array | None,
) -> Array:
  """x with the fed token of each row in its block, in place; see kv_cache.put.

  In stacked layers each block looks for the token of its row instead, as
  kv_cache.put_tokens does: XLA for TPU would copy the layer into the layout of
  a scatter and back.
  """
  if layer is not None:
    new_M = new_B.at[at.owner_M].get(mode='clip')
    return kv_cache.put_tokens(
      x, new_M[:, None], at.column_M[:, None], axis, layer
    )
  rest = (slice(None),) * (axis - 1)
  return x.at[(at.block_B, *rest, at.column_B)].set(new_B, mode='drop')


def sizes(max_tokens: int, cache_tokens: int) -> tuple[int, int, int]:
  """(tokens of a block, blocks of a whole response, blocks of the pool).

  The pool has room for cache_tokens, and at least for one whole response.
  """
  size = min(BLOCK, max_tokens)
  row_blocks = -(-max_tokens // size)
  return size, row_blocks, max(row_blocks, -(-cache_tokens // size))


def make_pool(
  cfg: Any, prompt: kv_cache.PromptCache, max_tokens: int, cache_tokens: int
) -> BlockPool:
  """An empty pool, see sizes."""
  size, row_blocks, blocks = sizes(max_tokens, cache_tokens)
  k, v = kv_cache.empty(prompt, blocks, 1, size)
  positions = jnp.arange(prompt.mask_NP.shape[1] + max_tokens)
  return BlockPool(
    prompt=prompt,
    k_BJKT=k,
    v_BJTK=v,
    rotations=rope.tables(cfg, positions),
    owner_M=jnp.full(blocks, FREE, jnp.int32),
    first_M=jnp.zeros(blocks, jnp.int32),
    row_blocks=row_blocks,
  )
