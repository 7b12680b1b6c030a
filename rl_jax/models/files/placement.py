"""Reads files into sharded arrays by blocks: no host holds a whole leaf.

A leaf may be many tensors of a file, one per layer, and larger than the host's
memory. It is allocated on the devices and filled block by block, in all shards.
The host holds what is read for a block of one shard, and its copy in the type
of the leaf; each at most BLOCK_ELEMENTS numbers.
"""

from collections.abc import Callable
import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
import numpy as np

BLOCK_ELEMENTS = 1 << 24  # 64 MiB of float32


class LeafReader(NamedTuple):
  """Reads parts of a leaf.

  read: the numbers that an index (a slice for each axis) selects.
  axes: those along which a partial read reads less, outermost first.
  """

  read: Callable[[tuple[slice, ...]], np.ndarray]
  axes: tuple[int, ...]


def place(
  reader: LeafReader,
  shape: tuple[int, ...],
  dtype: str,
  layout: jax.sharding.NamedSharding | None = None,
) -> jax.Array:
  """The leaf on its devices; each process reads its own shards.

  layout: None is the default device. The buffers may be donated.
  """
  shape = tuple(shape)
  shards = _shards(shape, layout, reader.axes)
  local = shape if layout is None else layout.shard_shape(shape)
  step = _block_shape(shape, local, reader.axes)
  starts = itertools.product(*map(_starts, local, step))
  read = functools.partial(_block, reader, shape, dtype, layout, shards, step)
  if step == local:
    return read((0,) * len(shape))
  leaf = jax.jit(lambda: jnp.zeros(shape, dtype), out_shardings=layout)()
  for start in starts:
    leaf = _writer(layout)(leaf, read(start), np.asarray(start, np.int32))
    leaf.block_until_ready()  # otherwise blocks pile up in the host's memory
  return leaf


def _shards(shape, layout, axes) -> dict[tuple[int, ...], list[Any]]:
  """{first index of a shard: its devices here}, in the order of reading."""
  if layout is None:
    return {(0,) * len(shape): [None]}
  shards: dict[tuple[int, ...], list[Any]] = {}
  for device, index in layout.addressable_devices_indices_map(shape).items():
    origin = tuple(
      part.indices(size)[0] for part, size in zip(index, shape, strict=True)
    )
    shards.setdefault(origin, []).append(device)
  return dict(sorted(shards.items(), key=lambda x: [x[0][i] for i in axes]))


def _block_shape(shape, local, axes) -> tuple[int, ...]:
  """The block of a shard for which at most BLOCK_ELEMENTS are read.

  If even the smallest block needs more, the smallest.
  """
  step = list(local)
  elements = math.prod(
    local[axis] if axis in axes else size for axis, size in enumerate(shape)
  )
  for axis in axes:
    if elements <= BLOCK_ELEMENTS:
      break
    rest = elements // step[axis]
    blocks = -(-local[axis] // max(1, BLOCK_ELEMENTS // rest))
    step[axis] = -(-local[axis] // blocks)
    elements = rest * step[axis]
  return tuple(step)


def _starts(size: int, step: int) -> list[int]:
  """First indices of equal blocks that cover an axis; two may overlap."""
  return [min(i, size - step) for i in range(0, size, max(step, 1))]


def _block(reader, shape, dtype, layout, shards, step, start) -> jax.Array:
  """The block at `start` of every shard, sharded as the leaf."""
  pieces, known = [], {}
  for origin, devices in shards.items():
    index = tuple(
      slice(origin[axis] + start[axis], origin[axis] + start[axis] + step[axis])
      for axis in range(len(shape))
    )
    # Shards that differ only in other axes have the same part of the file.
    wide = tuple(
      index[axis] if axis in reader.axes else slice(0, size)
      for axis, size in enumerate(shape)
    )
    key = tuple((part.start, part.stop) for part in wide)
    if key not in known:
      known.clear()
      known[key] = reader.read(wide)
    narrow = tuple(
      slice(None) if axis in reader.axes else part
      for axis, part in enumerate(index)
    )
    # Not in C order: device_put transposes at twice the speed of numpy.
    part = np.asarray(known[key][narrow], dtype)
    # Buffers that alias host memory could not be donated.
    put = [jax.device_put(part, device, may_alias=False) for device in devices]
    pieces += jax.block_until_ready(put)
  if layout is None:
    return pieces[0]
  times = np.floor_divide(shape, layout.shard_shape(shape)).tolist()
  block = tuple(n * size for n, size in zip(times, step, strict=True))
  return jax.make_array_from_single_device_arrays(block, layout, pieces)


@functools.cache
def _writer(layout) -> Callable:
  """f(leaf, block, start): the leaf, in place, with a block in every shard."""

  def write(leaf, block, start):
    return lax.dynamic_update_slice(leaf, block, tuple(start))

  if layout is not None:
    write = jax.shard_map(
      write,
      mesh=layout.mesh,
      in_specs=(layout.spec, layout.spec, PartitionSpec()),
      out_specs=layout.spec,
      check_vma=False,
    )
  return jax.jit(write, donate_argnums=0)
