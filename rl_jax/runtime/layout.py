"""Layouts of arrays inside jit, by the logical axes of the mesh in force."""

from collections.abc import Callable, Sequence
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec

from rl_jax.runtime.mesh import COPIES, ROW_AXES, RULES, axes_of, partition
from rl_jax.types import Array


def _axes_in_force() -> dict[str, int]:
  """Sizes of the mesh axes that the compiler may use; {} without a mesh."""
  mesh = jax.sharding.get_abstract_mesh()
  if mesh.empty:
    return {}
  return {
    name: size
    for name, size, kind in zip(
      mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True
    )
    if kind == AxisType.Auto
  }


def parts(size: int, logical: str, sizes: dict[str, int] | None = None) -> int:
  """Number of parts that RULES split size into, on the mesh in force."""
  sizes = _axes_in_force() if sizes is None else sizes
  return math.prod(sizes[name] for name in axes_of(size, logical, sizes))


def split_over(size: int, logical: str) -> tuple[str, ...]:
  """The mesh axes in force, of several devices, that RULES split size over."""
  sizes = _axes_in_force()
  return tuple(
    name for name in axes_of(size, logical, sizes) if sizes[name] > 1
  )


def constrain(x: Array, *logical_axes: str | None) -> Array:
  """Fixes the layout of x inside jit; without a mesh in force, just x.

  Axes that are manual in a surrounding shard_map are left unchanged.
  """
  sizes = _axes_in_force()
  if not sizes:
    return x
  return jax.lax.with_sharding_constraint(
    x, partition(x.shape, logical_axes, sizes)
  )


def gathered(x: Array, *logical_axes: str | None) -> Array:
  """x whole over 'width', and otherwise by RULES.

  Where that is not the first axis, its devices split an earlier one before they
  gather it. So they gather x as it lies in memory; XLA would turn the whole.
  """
  sizes = _axes_in_force()
  if not sizes:
    return x
  others = tuple(None if a == 'width' else a for a in logical_axes)
  whole = [axes_of(*pair, sizes) for pair in zip(x.shape, others, strict=True)]
  at = logical_axes.index('width') if 'width' in logical_axes else 0
  own = split_over(x.shape[at], 'width') if at else ()
  for i, logical in enumerate(others[:at] if own else ()):
    names = (*whole[i], *own)
    even = x.shape[i] % math.prod(sizes[name] for name in names) == 0
    if logical != 'layers' and even:
      turned = PartitionSpec(*whole[:i], names, *whole[i + 1 :])
      x = jax.lax.with_sharding_constraint(x, turned)
      break
  return jax.lax.with_sharding_constraint(x, PartitionSpec(*whole))


def by_rows(
  function: Callable, split: Sequence[bool], num_prompts: int
) -> Callable:
  """Runs function once per shard of sampled rows, independently.

  split: for each argument, True if its leading axis is prompts or rows, False
  if every shard needs all of it. Results have rows. The compiler partitions
  all axes but those of rows. With one shard this returns function itself.
  """
  sizes = _axes_in_force()
  axes = axes_of(num_prompts, 'sampled_rows', sizes)
  if math.prod(sizes[name] for name in axes) == 1:
    return function
  rows = PartitionSpec(axes)
  return _shard_map(
    function,
    tuple(rows if divided else PartitionSpec() for divided in split),
    rows,
    axes,
  )


def copies(tree: Any, num_prompts: int) -> Any | None:
  """The tree with a leading axis of D equal entries, one on each data shard.

  The gradient of a function `by_copies` with respect to them is one sum per
  shard, and the only communication is the sum of these. None if the prompts are
  on one shard, or if tokens or heads are split too: XLA's partitioner aborts on
  such gradients.
  """
  sizes = _axes_in_force()
  others = math.prod(sizes[name] for name in sizes if name not in ROW_AXES)
  axes = axes_of(num_prompts, 'rows', sizes)
  if COPIES not in axes or sizes[COPIES] == 1 or others > 1:
    return None

  def spread(x):
    free = (PartitionSpec.UNCONSTRAINED,) * x.ndim
    return jax.lax.with_sharding_constraint(
      jnp.broadcast_to(x, (sizes[COPIES], *x.shape)),
      PartitionSpec(COPIES, *free),
    )

  return jax.tree.map(spread, tree)


def by_copies(function: Callable) -> Callable:
  """function(tree, rows) for the tree's `copies`, each with its shard of rows.

  Results have rows. The compiler partitions all other axes.
  """

  def local(tree_D, rows):
    return function(jax.tree.map(lambda x: x[0], tree_D), rows)

  copy = PartitionSpec(COPIES)
  return _shard_map(local, copy, copy, (COPIES,))


def by_tokens(function: Callable, split: Sequence[bool]) -> Callable:
  """Runs function once per span of tokens, which lie on the second axis.

  split: for each argument, True if it has that axis, False if every span needs
  all of it. Results have it. The compiler partitions all other axes.
  """
  spans = PartitionSpec(None, RULES['tokens'])
  return _shard_map(
    function,
    tuple(spans if divided else PartitionSpec() for divided in split),
    spans,
    (RULES['tokens'],),
  )


def on_parts(
  function: Callable, arrays: Sequence[Array], logical_axes: Sequence[tuple]
) -> Array:
  """Runs function on the part of the arrays that each device has by RULES.

  For kernels, which the compiler cannot partition. The result has the layout of
  the first array. Without a mesh in force this calls function itself.
  """
  sizes = _axes_in_force()
  if math.prod(sizes.values()) == 1:
    return function(*arrays)
  specs = tuple(
    partition(x.shape, axes, sizes)
    for x, axes in zip(arrays, logical_axes, strict=True)
  )
  return _shard_map(function, specs, specs[0], sizes)(*arrays)


def _shard_map(function, in_specs, out_specs, axes):
  """shard_map over axes of the mesh in force, and over those of size 1.

  If no axis is left to the compiler, JAX omits the constraint that it otherwise
  adds to the result of every operation.
  """
  sizes = _axes_in_force()
  return jax.shard_map(
    function,
    in_specs=in_specs,
    out_specs=out_specs,
    axis_names={name for name in sizes if name in axes or sizes[name] == 1},
    check_vma=False,
  )
