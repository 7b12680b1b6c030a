"""Keys and values of prompts, stored once per group, and of responses.

On CPU each layer has separate arrays: a decoding step then writes its column
and reads the others in place, where a slice of one stacked array would be
copied at every layer and step. There the columns are split into two blocks, of
which the second is not read before it holds tokens. On TPU, and on GPU in a
model with experts, the layers are stacked on the second axis
(`decoding.scans_layers`). A small cache has one block and can be grown.
"""

import functools
from typing import Any, NamedTuple, Self

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import decode_attention, rope
from rl_jax.runtime.platform import Platform
from rl_jax.types import Array

# Columns; with smaller blocks, merging costs more than it saves.
LEAST_BLOCK = 32
# Each costs its own write at every step.
TURN_BLOCKS = 4
LANES = 128  # of a TPU


class PoolStep(NamedTuple):
  """The places where rows of a pool write the fed token, and what they see.

  block: past the last one for a row that holds no block for its token.
  column_M: the column of a block that its row writes, past the last one if
  none. seen: tokens before the one that is fed. age: how many tokens ago they
  were fed.
  """

  block_B: Array
  column_B: Array
  owner_M: Array
  column_M: Array
  seen_MC: Array
  age_MC: Array


# For each block: the column to write, whether it is in this block (None if
# there is no other), and what each row sees.
BlockSteps = list[tuple[Array, Array | None, Array]]


class PromptCache(struct.PyTreeNode, kw_only=True):
  """The prompts' keys and values, shared by the G samples of a group."""

  k_NJKP: tuple[Array, ...]  # one per layer, or one of all, [N, L, J, K, P]
  v_NJPK: tuple[Array, ...]
  mask_NP: Array  # float32, 1 on real tokens

  @property
  def num_prompts(self) -> int:
    """N."""
    return self.mask_NP.shape[0]

  def take(
    self, group_W: Array, cfg: Any, at_rest: bool = False
  ) -> 'PromptCache':
    """The prompts of the given groups; see taken."""
    k, v = taken(self.k_NJKP, self.v_NJPK, group_W, cfg, at_rest)
    return self.replace(k_NJKP=k, v_NJPK=v, mask_NP=self.mask_NP[group_W])


class Cache(struct.PyTreeNode, kw_only=True):
  """The shared prompt part, and the part of each row, written at each step."""

  prompt: PromptCache
  # The blocks of each layer, or of all in one entry, [B, L, J, K, T].
  k_BJKT: tuple[tuple[Array, ...], ...]
  v_BJTK: tuple[tuple[Array, ...], ...]
  rotations: tuple[Array, ...]  # rope.tables of all positions

  def behind_prompt(self, step_B: Array) -> Array:
    """The distance of token `step` of each row from the end of the prompt."""
    return step_B

  def take(self, slot_W: Array, cfg: Any, at_rest: bool = False) -> Self:
    """The given rows, with the prompts of all; see taken."""
    k, v = taken(self.k_BJKT, self.v_BJTK, slot_W, cfg, at_rest)
    return self.replace(k_BJKT=k, v_BJTK=v)

  @property
  def places(self) -> int:
    """Capacity, in tokens of a row."""
    return sum(k.shape[-1] for k in self.k_BJKT[0])

  def grown(self, max_tokens: int, platform: Platform) -> Self:
    """A cache of one block, not yet full, enlarged to max_tokens."""
    blocks, places = blocks_of(max_tokens, platform)

    def layers(x, axis):
      def larger(first):
        wider = [(0, 0)] * first.ndim
        wider[axis] = (0, places - first.shape[axis])
        first = jnp.pad(first, wider)
        return first, *(jnp.zeros_like(first) for _ in range(blocks - 1))

      return tuple(larger(first) for (first,) in x)

    return self.replace(
      k_BJKT=layers(self.k_BJKT, -1), v_BJTK=layers(self.v_BJTK, -2)
    )

  def step(self, clock: Array, step_B: Array) -> BlockSteps | PoolStep:
    """For each block: the column to write, if any, and what each row sees.

    The columns of all blocks are a ring buffer: the token of T steps ago, which
    no row needs any more, is overwritten. Returns the column, whether the token
    belongs to this block (None if there is no other), and the mask [B, 1, T].
    """
    blocks = len(self.k_BJKT[0])
    size = self.k_BJKT[0][0].shape[-1]
    now = clock % (blocks * size)
    found: BlockSteps = []
    for block, age_11T in enumerate(self.ages(clock, step_B)):
      seen_B1T = age_11T <= step_B[:, None, None]
      here = None if blocks == 1 else now // size == block
      found.append((now % size, here, seen_B1T))
    return found

  def seen(self, clock: Array, step_B: Array) -> tuple[Array, Array]:
    """The columns of one block that rows see: low, ..., high - 1 in the ring.

    See decode_attention.Seen. They are those of the mask that `step` returns;
    a row at step -1 sees none.
    """
    now = clock % self.places
    # Rows that have ended count on.
    low_B = now - jnp.minimum(step_B, self.places - 1)
    around_B = jnp.where(low_B < 0, self.places, 0)
    return low_B + around_B, now + 1 + around_B

  def ages(self, clock: Array, step_B: Array) -> list[Array]:
    """For each block: how many tokens ago its columns were written."""
    del step_B
    blocks = len(self.k_BJKT[0])
    size = self.k_BJKT[0][0].shape[-1]
    now = clock % (blocks * size)
    return [
      ((now - block * size - jnp.arange(size)) % (blocks * size))[None, None]
      for block in range(blocks)
    ]


class RowCache(Cache, kw_only=True):
  """A cache in which token t of a row is in column t.

  Rows need not be at the same token: those of episodes wait for each other. A
  block is not read unless some row sees a token there.
  context: the first token that a row sees, right after its prompt; None: 0.
  """

  context_B: Array | None = None

  def behind_prompt(self, step_B: Array) -> Array:
    """See Cache."""
    return step_B if self.context_B is None else step_B - self.context_B

  def take(self, slot_W: Array, cfg: Any, at_rest: bool = False) -> Self:
    """See Cache."""
    context_B = None if self.context_B is None else self.context_B[slot_W]
    found = super().take(slot_W, cfg, at_rest)
    return found.replace(context_B=context_B)

  def step(self, clock: Array, step_B: Array) -> BlockSteps:
    """See Cache; columns are int32 [B], outside of the block if not here."""
    del clock
    size = self.k_BJKT[0][0].shape[-1]
    # Rows that have ended write to the last column, which no token needs.
    step_B = jnp.minimum(step_B, self.places - 1)
    found: BlockSteps = []
    for first in range(0, self.places, size):
      column_B = jnp.where(step_B >= first, step_B - first, size)
      token_T = jnp.arange(first, first + size)
      seen_B1T = token_T[None, None] <= step_B[:, None, None]
      found.append(
        (column_B, None, seen_B1T & remembered(token_T, self.context_B))
      )
    return found

  def seen(self, clock: Array, step_B: Array) -> tuple[Array, Array]:
    """See Cache; of one block."""
    del clock
    high_B = jnp.minimum(step_B, self.places - 1) + 1
    if self.context_B is None:
      return jnp.zeros_like(high_B), high_B
    return self.context_B, high_B

  def ages(self, clock: Array, step_B: Array) -> list[Array]:
    """See Cache; [B, 1, T], negative where nothing has been written."""
    del clock
    size = self.k_BJKT[0][0].shape[-1]
    return [
      step_B[:, None, None] - jnp.arange(first, first + size)[None, None]
      for first in range(0, self.places, size)
    ]


def taken(
  keys: tuple,
  values: tuple,
  index_W: Array,
  cfg: Any,
  at_rest: bool = False,
) -> tuple[tuple, tuple]:
  """(keys, values) of each layer at the indices of the first axis.

  On GPU each array is taken after the one before, whose old places may then be
  free. XLA takes the keys of all layers in one kernel otherwise, so that the
  old and the new ones of all lie there together. On TPU fewer rows are copied
  one after another: XLA cuts a large gather into pieces, and copies the cache
  of all rows for them. Where no kernel reads the cache, it may have rows along
  the lanes, which only a gather leaves there.

  at_rest: the cache is an argument of the program and stays; on TPU it has the
  layout of arguments then, not that in which kernels read it.
  """
  in_turn = cfg.platform.is_gpu and not at_rest
  row_by_row = cfg.platform.name == 'tpu'
  row_by_row &= at_rest or decode_attention.runs(cfg)

  def of_keys(x, index_W):
    return take(x, index_W, turned=not at_rest)

  def of_values(x, index_W):
    # Arguments have tokens along the lanes, unless a head fills them.
    return take(x, index_W, turned=at_rest and x.shape[-1] % LANES != 0)

  def take(x, index_W, turned):
    if row_by_row and len(index_W) < len(x):
      return _row_by_row(x, index_W, turned)
    return x[index_W]

  found: tuple[list, list] = [], []
  for layer in zip(keys, values, strict=True):
    for kind, one, blocks in zip(
      found, (of_keys, of_values), layer, strict=True
    ):
      new = jax.tree.map(functools.partial(one, index_W=index_W), blocks)
      if in_turn:  # the next one needs these indices
        new, index_W = lax.optimization_barrier((new, index_W))
      kind.append(new)
  return tuple(found[0]), tuple(found[1])


def _row_by_row(x: Array, index_W: Array, turned: bool) -> Array:
  """x[index_W], copied in a loop.

  XLA for TPU puts the last axis of its arrays along the lanes. Kernels read
  keys and values with the numbers of a head there. turned: x has its second
  last axis there; another layout would be a copy.
  """
  x = jnp.swapaxes(x, -1, -2) if turned else x
  x = lax.map(
    functools.partial(lax.dynamic_index_in_dim, x, keepdims=False), index_W
  )
  return jnp.swapaxes(x, -1, -2) if turned else x


def remembered(token_T: Array, context_B: Array | None) -> Array | bool:
  """Returns which tokens a row has not forgotten, [B, 1, T]; see RowCache."""
  if context_B is None:
    return True
  return token_T[None, None] >= context_B[:, None, None]


def put(
  x: Array,
  new: Array,
  column: Array,
  here: Array | None,
  axis: int,
  layer: Array | None = None,
) -> Array:
  """x with `new` written to a column in place; unchanged if not `here`.

  An extra column for unused writes would be simpler, but a product with 65 keys
  takes XLA on CPU 1.5 times as long as one with 64.

  Args:
    column: of all rows, or [B] of each, where one that is too large is none.
    axis: of the columns in the arrays of one layer.
    layer: which one of x [B, L, ...] is written; None: x is of one layer.
  """
  if jnp.ndim(column):
    if layer is not None:
      return put_tokens(x, new[:, None], column[:, None], axis, layer)
    rest = (slice(None),) * (axis - 1)
    index = (jnp.arange(x.shape[0]), *rest, column)
    return x.at[index].set(new, mode='drop')
  new = jnp.expand_dims(new, axis)
  if here is not None:
    old = lax.dynamic_index_in_dim(layer_of(x, layer), column, axis)
    new = jnp.where(here, new, old)
  start: list[Any] = [0] * new.ndim
  start[axis] = column
  if layer is not None:
    new, start = new[:, None], [0, layer, *start[1:]]
  return lax.dynamic_update_slice(x, new, start)


def layer_of(x: Array, layer: Array | None) -> Array:
  """Returns that layer [B, ...] of x [B, L, ...]; None: x as it is."""
  if layer is None:
    return x
  return lax.dynamic_index_in_dim(x, layer, axis=1, keepdims=False)


def put_tokens(
  x: Array, new_BS: Array, column_BS: Array, axis: int, layer: Array | None
) -> Array:
  """x with several columns of each row replaced, in place; see put.

  A column that is too large is none. Without stacked layers this is a scatter,
  which XLA for TPU does in another layout than kernels read: in the scan over
  layers it would turn them all, or copy one of them each way. There columns are
  compared, all of them in one pass.
  """
  if layer is None:
    rows = jnp.arange(x.shape[0])[:, None]
    rest = (slice(None),) * (axis - 1)
    return x.at[rows, *rest, column_BS].set(new_BS, mode='drop')
  one = layer_of(x, layer)
  place = lax.broadcasted_iota(jnp.int32, one.shape, axis)
  others = tuple(range(1, one.ndim))
  for token in range(column_BS.shape[1]):
    here = place == jnp.expand_dims(column_BS[:, token], others)
    one = jnp.where(here, jnp.expand_dims(new_BS[:, token], axis), one)
  return lax.dynamic_update_index_in_dim(x, one, layer, 1)


def blocks_of(max_tokens: int, platform: Platform) -> tuple[int, int]:
  """(number of blocks, columns of each) for max_tokens tokens of a row.

  One block on accelerators: each layer would have to decide on the host whether
  to read the second.
  """
  half = -(-max_tokens // 2)
  if not platform.is_cpu or half < LEAST_BLOCK:
    return 1, max_tokens
  return 2, half


def turn_blocks(max_tokens: int, platform: Platform) -> tuple[int, int]:
  """The same of a RowCache: more blocks, as episodes grow turn by turn."""
  most = max(1, min(TURN_BLOCKS, max_tokens // LEAST_BLOCK))
  blocks = most if platform.is_cpu else 1
  return blocks, -(-max_tokens // blocks)


def first_places(max_tokens: int) -> int:
  """Columns of a small initial cache: a quarter, or all if that is too few."""
  few = -(-max_tokens // 4)
  return few if few >= LEAST_BLOCK else max_tokens


def extend(
  cfg: Any,
  prompt: PromptCache,
  rows: int,
  max_tokens: int,
  places: int | None = None,
) -> Cache:
  """Adds columns for max_tokens tokens of each of the rows.

  places: columns of a small cache for the first tokens; None: for all tokens.
  The last token is never fed, but powers of two are faster than one column
  less.
  """
  blocks, places = (
    (1, places) if places else blocks_of(max_tokens, cfg.platform)
  )
  k, v = empty(prompt, rows, blocks, places)
  positions = jnp.arange(prompt.mask_NP.shape[1] + max_tokens)
  rotations = rope.tables(cfg, positions)
  return Cache(prompt=prompt, k_BJKT=k, v_BJTK=v, rotations=rotations)


def for_turns(
  cfg: Any, prompt: PromptCache, rows: int, max_tokens: int
) -> RowCache:
  """The cache of episodes; rotations are constants of each program instead."""
  k, v = empty(prompt, rows, *turn_blocks(max_tokens, cfg.platform))
  none_B = jnp.zeros(rows, jnp.int32)
  return RowCache(
    prompt=prompt, k_BJKT=k, v_BJTK=v, rotations=(), context_B=none_B
  )


def for_blocks(
  cfg: Any, prompt: PromptCache, rows: int, max_tokens: int
) -> RowCache:
  """The cache of decode_block: one block of columns."""
  k, v = empty(prompt, rows, 1, max_tokens)
  positions = jnp.arange(prompt.mask_NP.shape[1] + max_tokens)
  rotations = rope.tables(cfg, positions)
  return RowCache(prompt=prompt, k_BJKT=k, v_BJTK=v, rotations=rotations)


def empty(prompt, rows, blocks, places):
  """Keys and values of all layers, 0."""
  *_, kv_heads, head_size, _ = prompt.k_NJKP[0].shape
  stacked = prompt.k_NJKP[0].shape[1:-3]  # the number of layers, if they are

  def layers(*shape):
    shape, dtype = (rows, *stacked, *shape), prompt.k_NJKP[0].dtype
    return tuple(
      tuple(jnp.zeros(shape, dtype) for _ in range(blocks))
      for _ in prompt.k_NJKP
    )

  return (
    layers(kv_heads, head_size, places),
    layers(kv_heads, places, head_size),
  )
