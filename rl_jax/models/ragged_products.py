"""Products of sorted rows with the matrix of their block, by kernels for GPUs.

Rows lie block by block, sizes_E[e] of them in block e:

  y[r] = x[r] w[e]    dx[r] = dy[r] w[e]^T    dw[e] = sum of x[r]^T dy[r]

That is jax.lax.ragged_dot, which XLA for GPU expands so that every row meets
every matrix. Here a program multiplies a tile, which has rows of one block:

  rows   | 0 1 2 3 4 | 5 6 | 7 8 9 10 11 12 |       three blocks
  tiles  | 0 . . 3 | 4 | 5 6 | 7 . . 10 | 11 12 |   of four rows at most
"""

import functools

import jax
from jax import lax
from jax.experimental import pallas as pl
import jax.numpy as jnp

from rl_jax.runtime.platform import Platform
from rl_jax.types import Array

AMPERE = (8, 0)
MOST_ROWS = 128  # of a tile
COLUMNS = 128  # of the results of a program
STEP = 64  # numbers that a program contracts at a time
LEAST = 16  # of each in a product of a GPU
MOST_COMPARED = 1024  # rows; the pairs of more cost more than a sort


def runs(platform: Platform, dtype: str) -> bool:
  """Returns whether products of ragged blocks are a kernel of this module."""
  known = platform.name == 'cuda' and platform.capability >= AMPERE
  return known and dtype == 'bfloat16'


def sorted_by_block(block_R: Array) -> tuple[Array, Array]:
  """The rows in order of their blocks, and the place of each row there.

  Rows of a block keep their order. Few rows are compared in pairs: that is two
  kernels, where a sort has several for XLA to compile, in every layer again.
  """
  rows = len(block_R)
  if rows > MOST_COMPARED:
    order_R = jnp.argsort(block_R, stable=True)
    return order_R, jnp.argsort(order_R)
  row_R = jnp.arange(rows, dtype=jnp.int32)
  earlier_RR = block_R[None] < block_R[:, None]
  equal_RR = block_R[None] == block_R[:, None]
  earlier_RR |= equal_RR & (row_R[None] < row_R[:, None])
  place_R = earlier_RR.sum(axis=1, dtype=jnp.int32)
  here_RR = place_R[None] == row_R[:, None]
  return jnp.where(here_RR, row_R[None], 0).sum(axis=1), place_R


def block_sizes(block_R: Array, blocks: int) -> Array:
  """The number of rows of each block, int32[E]."""
  here_RE = block_R[:, None] == jnp.arange(blocks)[None]
  return here_RE.sum(axis=0, dtype=jnp.int32)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def product(
  x_RD: Array, w_EDF: Array, sizes_E: Array, interpret: bool = False
) -> Array:
  """Each row times the matrix of its block, [R, F]; sums are in float32.

  Rows after the last block hold anything, here and in the gradient of x.
  """
  return _by_rows(x_RD, w_EDF, sizes_E, False, interpret)


def product_of_layer(
  x_RD: Array,
  w_LEDF: Array,
  number: Array,
  sizes_E: Array,
  interpret: bool = False,
) -> Array:
  """The same with the matrices of one layer of several, which has no gradient.

  The kernel reads them where they are; a slice for it would be a copy.
  """
  w_BDF = w_LEDF.reshape(-1, *w_LEDF.shape[2:])
  first = number * len(sizes_E)
  return _by_rows(x_RD, w_BDF, sizes_E, False, interpret, first)


def _forward(x_RD, w_EDF, sizes_E, interpret):
  y_RF = product(x_RD, w_EDF, sizes_E, interpret)
  return y_RF, (x_RD, w_EDF, sizes_E)


def _backward(interpret, saved, dy_RF):
  x_RD, w_EDF, sizes_E = saved
  dx_RD = _by_rows(dy_RF, w_EDF, sizes_E, True, interpret)
  return dx_RD, _by_blocks(x_RD, dy_RF, sizes_E, interpret), None


product.defvjp(_forward, _backward)


def _tiles(sizes_E: Array, rows: int, tile: int, first: Array | int) -> Array:
  """The matrix of each tile, its first row, and that after its block's last.

  As many as there may be, int32[tiles, 3]; those that are not needed have no
  rows. first: the matrix of block 0.
  """
  E = len(sizes_E)
  end_E, tiles_E = _ends(sizes_E), -(-sizes_E // tile)
  last_E = _ends(tiles_E)
  number_T = jnp.arange(rows // tile + min(E, rows))
  block_T = (number_T[:, None] >= last_E[None]).sum(axis=1)
  used_T, block_T = block_T < E, jnp.minimum(block_T, E - 1)

  def of_tile(x_E):
    return x_E.at[block_T].get(mode='promise_in_bounds')

  before_T = number_T - of_tile(last_E - tiles_E)
  first_T = of_tile(end_E - sizes_E) + before_T * tile
  limits = (jnp.where(used_T, x, 0) for x in (first_T, of_tile(end_E)))
  return jnp.stack([block_T + first, *limits], axis=1).astype(jnp.int32)


def _ends(sizes_E: Array) -> Array:
  """The sum of the sizes so far; a cumsum is more operations to compile."""
  place_E = jnp.arange(len(sizes_E))
  before_EE = place_E[None] <= place_E[:, None]
  return jnp.where(before_EE, sizes_E[None], 0).sum(axis=1)


def _sides(size: int, most: int) -> int:
  """Returns a power of two for tiles of an axis."""
  return min(most, max(LEAST, pl.next_power_of_2(size)))


def _by_rows(x_RD, w_EDF, sizes_E, turned, interpret, first=0) -> Array:
  """x w of each tile of rows, or x w^T; first: the matrix of block 0."""
  R, E = len(x_RD), len(sizes_E)
  F = w_EDF.shape[1 if turned else 2]
  tile, columns = _sides(R // E, MOST_ROWS), _sides(F, COLUMNS)
  tiles_T3 = _tiles(sizes_E, R, tile, first)
  return pl.pallas_call(
    functools.partial(_rows_kernel, sides=(tile, columns), turned=turned),
    grid=(len(tiles_T3), pl.cdiv(F, columns)),
    in_specs=[
      _whole(x_RD.shape),
      _whole(w_EDF.shape),
      pl.BlockSpec((None, 3), lambda t, f: (t, 0)),
    ],
    out_specs=_whole((R, F)),
    out_shape=jax.ShapeDtypeStruct((R, F), x_RD.dtype),
    compiler_params=_parameters(tile),
    interpret=interpret,
    name='ragged_product',
  )(x_RD, w_EDF, tiles_T3)


def _by_blocks(x_RD, dy_RF, sizes_E, interpret) -> Array:
  """x^T dy of the rows of each block, [E, D, F]."""
  D, F, E = x_RD.shape[1], dy_RF.shape[1], len(sizes_E)
  sides = _sides(D, MOST_ROWS), _sides(F, COLUMNS)
  end_E = _ends(sizes_E)
  limits_E2 = jnp.stack([end_E - sizes_E, end_E], axis=1).astype(jnp.int32)
  return pl.pallas_call(
    functools.partial(_blocks_kernel, sides=sides),
    grid=(E, pl.cdiv(D, sides[0]), pl.cdiv(F, sides[1])),
    in_specs=[
      _whole(x_RD.shape),
      _whole(dy_RF.shape),
      pl.BlockSpec((None, 2), lambda e, d, f: (e, 0)),
    ],
    out_specs=pl.BlockSpec((None, D, F), lambda e, d, f: (e, 0, 0)),
    out_shape=jax.ShapeDtypeStruct((E, D, F), x_RD.dtype),
    compiler_params=_parameters(sides[0]),
    interpret=interpret,
    name='ragged_product_of_blocks',
  )(x_RD, dy_RF, limits_E2)


def _whole(shape) -> pl.BlockSpec:
  """The whole array, for every program."""
  return pl.BlockSpec(shape, lambda *_: (0,) * len(shape))


def _parameters(tile: int):
  """Two groups of warps for products of 128 rows."""
  from jax.experimental.pallas import triton

  return triton.CompilerParams(num_warps=8 if tile > 64 else 4, num_stages=3)


def _load(ref, index, mask):
  """Numbers of the array, and 0 where the mask says that there are none."""
  from jax.experimental.pallas import triton

  return triton.load(ref.at[index], mask=mask, other=0.0)


def _contracted(x, y, axes):
  """A product over one axis of each, in float32."""
  return lax.dot_general(
    x,
    y,
    (((axes[0],), (axes[1],)), ((), ())),
    preferred_element_type=jnp.float32,
  )


def _rows_kernel(x_ref, w_ref, tile_ref, y_ref, *, sides, turned):
  """One tile of rows, so many columns."""
  from jax.experimental.pallas import triton

  block, first, end = (tile_ref[i] for i in range(3))
  width, columns = x_ref.shape[1], y_ref.shape[1]
  step, begin = _sides(width, STEP), pl.program_id(1) * sides[1]
  rows, across = pl.ds(first, sides[0]), pl.ds(begin, sides[1])
  row_M1 = (first + jnp.arange(sides[0]) < end)[:, None]
  real_F = begin + jnp.arange(sides[1]) < columns

  def body(i, total):
    inner = pl.ds(i * step, step)
    real_D = i * step + jnp.arange(step) < width
    x = _load(x_ref, (rows, inner), row_M1 & real_D[None])
    if turned:
      w = _load(w_ref, (block, across, inner), real_F[:, None] & real_D[None])
      return total + _contracted(x, w, (1, 1))
    w = _load(w_ref, (block, inner, across), real_D[:, None] & real_F[None])
    return total + _contracted(x, w, (1, 0))

  steps = jnp.minimum(end - first, 1) * pl.cdiv(width, step)
  total = lax.fori_loop(0, steps, body, jnp.zeros(sides, jnp.float32))
  triton.store(
    y_ref.at[rows, across],
    total.astype(y_ref.dtype),
    mask=row_M1 & real_F[None],
  )


def _blocks_kernel(x_ref, dy_ref, limits_ref, dw_ref, *, sides):
  """Some of the numbers of one block's matrix; its rows are walked over."""
  from jax.experimental.pallas import triton

  first, end = limits_ref[0], limits_ref[1]
  begins = [pl.program_id(axis + 1) * sides[axis] for axis in (0, 1)]
  at_D, at_F = (pl.ds(*pair) for pair in zip(begins, sides, strict=True))
  real_D, real_F = (
    begin + jnp.arange(side) < size
    for begin, side, size in zip(begins, sides, dw_ref.shape, strict=True)
  )

  def body(i, total):
    begin = first + i * STEP
    rows = pl.ds(begin, STEP)
    row_S1 = (begin + jnp.arange(STEP) < end)[:, None]
    x = _load(x_ref, (rows, at_D), row_S1 & real_D[None])
    dy = _load(dy_ref, (rows, at_F), row_S1 & real_F[None])
    return total + _contracted(x, dy, (0, 0))

  steps = pl.cdiv(end - first, STEP)
  total = lax.fori_loop(0, steps, body, jnp.zeros(sides, jnp.float32))
  mask = real_D[:, None] & real_F[None]
  triton.store(dw_ref.at[at_D, at_F], total.astype(dw_ref.dtype), mask=mask)
