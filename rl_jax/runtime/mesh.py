"""Mesh axes, and which logical axis of an array lies on which of them."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import (
  AbstractMesh,
  AxisType,
  Mesh,
  NamedSharding,
  PartitionSpec,
)
import numpy as np

from rl_jax.types import Array, check_range

SEQUENCE = 'sequence'
COPIES = 'data'  # of the parameters
AXES = (COPIES, 'fsdp', SEQUENCE, 'tensor')
ROW_AXES = (COPIES, 'fsdp')

# Logical axis -> mesh axes. Axes that do not divide a size are left out, the
# last first: a vocabulary of 19 characters is copied rather than refused.
RULES = {
  'rows': ROW_AXES,  # prompts N and rows B; groups are never split
  'sampled_rows': (*ROW_AXES, SEQUENCE),  # the same in prefill and decoding
  'tokens': SEQUENCE,  # T of responses in score and update
  'layers': None,
  'vocab': 'tensor',
  'width': 'fsdp',
  'heads': 'tensor',
  'kv_heads': 'tensor',
  'head_size': None,
  'mlp': 'tensor',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeshConfig:
  """Devices along each mesh axis.

  data: copies of the parameters. fsdp: rows and parameters are both split.
  sequence: the tokens of responses are split in score and update, for long
  ones; while sampling, the rows. tensor: heads, MLP and vocabulary are split.
  """

  data: int = 1
  fsdp: int = 1
  sequence: int = 1
  tensor: int = 1

  def __post_init__(self):
    for axis in AXES:
      check_range(self, axis, 1)


def make_mesh(cfg: MeshConfig, devices: list | None = None) -> Mesh:
  """The mesh of all devices.

  Raises:
    ValueError: the axes do not multiply to the number of devices.
  """
  devices = jax.devices() if devices is None else devices
  shape = tuple(getattr(cfg, axis) for axis in AXES)
  if math.prod(shape) != len(devices):
    axes = ' '.join(f'{axis}={n}' for axis, n in zip(AXES, shape, strict=True))
    raise ValueError(
      f'mesh {axes} needs {math.prod(shape)} devices, but there are '
      f'{len(devices)}'
    )
  grid = np.asarray(devices).reshape(shape)
  return Mesh(grid, AXES, axis_types=(AxisType.Auto,) * len(AXES))


def abstract_mesh(cfg: MeshConfig) -> AbstractMesh:
  """The mesh without devices, for shapes and their shardings."""
  shape = tuple(getattr(cfg, axis) for axis in AXES)
  return AbstractMesh(shape, AXES, (AxisType.Auto,) * len(AXES))


def axes_of(
  size: int, logical: str | None, sizes: dict[str, int]
) -> tuple[str, ...]:
  """The mesh axes, of those in sizes, that RULES split a dimension over."""
  rule = RULES[logical] if logical is not None else None
  names = (rule,) if isinstance(rule, str) else rule or ()
  names = tuple(name for name in names if name in sizes)
  while size % math.prod(sizes[name] for name in names):
    names = names[:-1]
  return names


def _partition(shape, logical_axes, sizes: dict[str, int]) -> PartitionSpec:
  pairs = zip(shape, logical_axes, strict=True)
  return PartitionSpec(*(axes_of(*pair, sizes) or None for pair in pairs))


def param_shardings(specs: Any, mesh: Mesh) -> Any:
  """NamedSharding of every ParamSpec in the tree."""
  sizes = dict(mesh.shape)
  return jax.tree.map(
    lambda spec: NamedSharding(
      mesh, _partition(spec.shape, spec.logical_axes, sizes)
    ),
    specs,
    is_leaf=lambda x: hasattr(x, 'logical_axes'),
  )


def rows(mesh: Mesh) -> NamedSharding:
  """Arrays whose first axis is prompts or rows."""
  return NamedSharding(mesh, PartitionSpec(ROW_AXES))


def replicated(mesh: Mesh) -> NamedSharding:
  """Every device holds the whole array."""
  return NamedSharding(mesh, PartitionSpec())


def of(tree: Any) -> Any:
  """The shardings of a tree of arrays, to fix those of a jitted result."""
  return jax.tree.map(lambda x: x.sharding, tree)


def spans(mesh: Mesh | AbstractMesh | None) -> int:
  """Into how many parts, on different devices, a mesh splits responses."""
  return 1 if mesh is None else dict(mesh.shape).get(SEQUENCE, 1)


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
  """Into how many parts RULES split it on the mesh in force, or of sizes."""
  sizes = _axes_in_force() if sizes is None else sizes
  return math.prod(sizes[name] for name in axes_of(size, logical, sizes))


def constrain(x: Array, *logical_axes: str | None) -> Array:
  """Fixes the layout of x inside jit; without a mesh in force, just x.

  Axes that a surrounding shard_map has taken over are left alone.
  """
  sizes = _axes_in_force()
  if not sizes:
    return x
  return jax.lax.with_sharding_constraint(
    x, _partition(x.shape, logical_axes, sizes)
  )


def by_rows(
  function: Callable, split: Sequence[bool], num_prompts: int
) -> Callable:
  """Runs function once per shard of sampled rows, each without waiting.

  split: for each argument, True if its leading axis is prompts or rows, False
  if every shard needs all of it. Results have rows. Axes other than those of
  rows stay under the compiler's control. Just function, if there is one shard.
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

  Of a function `by_copies`, the gradient by them is a sum a shard: nothing is
  exchanged before these are added up. None if the prompts are on one shard, or
  tokens or heads are split too: XLA's partitioner aborts on their gradients.
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

  Results have rows. Other axes stay under the compiler's control.
  """

  def local(tree_D, rows):
    return function(jax.tree.map(lambda x: x[0], tree_D), rows)

  copy = PartitionSpec(COPIES)
  return _shard_map(local, copy, copy, (COPIES,))


def by_tokens(function: Callable, split: Sequence[bool]) -> Callable:
  """Runs function once per span of tokens, which lie on the second axis.

  split: for each argument, True if it has that axis, False if every span needs
  all of it. Results have it. Axes other than that of tokens stay under the
  compiler's control.
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
  """Runs function on what each device holds of the arrays by the RULES.

  For kernels, which the compiler cannot divide. The result lies as the first
  array does. Just function without a mesh in force.
  """
  sizes = _axes_in_force()
  if math.prod(sizes.values()) == 1:
    return function(*arrays)
  specs = tuple(
    _partition(x.shape, axes, sizes)
    for x, axes in zip(arrays, logical_axes, strict=True)
  )
  return _shard_map(function, specs, specs[0], sizes)(*arrays)


def _shard_map(function, in_specs, out_specs, axes):
  """shard_map over axes of the mesh in force, and over those of one device.

  With no axis left to the compiler JAX leaves out the constraint that it
  otherwise puts on the result of every operation.
  """
  sizes = _axes_in_force()
  return jax.shard_map(
    function,
    in_specs=in_specs,
    out_specs=out_specs,
    axis_names={name for name in sizes if name in axes or sizes[name] == 1},
    check_vma=False,
  )


def init_params(cfg: Any, key: Array, mesh: Mesh | None = None) -> Any:
  """Parameters of a ModelConfig, born sharded: never whole on one device."""
  return init_missing(cfg, {}, key, mesh)


def init_missing(
  cfg: Any, params: Any, key: Array, mesh: Mesh | None = None
) -> Any:
  """The top-level trees of a ModelConfig (lora, ...) that params lack."""
  # The transformer constrains its activations with this module.
  from rl_jax.models import transformer

  names = tuple(k for k in transformer.specs(cfg) if k not in params)
  return _initializer(cfg, names, mesh)(key) if names else {}


@functools.cache
def _initializer(cfg: Any, names: tuple[str, ...], mesh: Mesh | None) -> Any:
  """One program for all seeds."""
  from rl_jax.models import spec, transformer

  specs = {name: transformer.specs(cfg)[name] for name in names}
  shardings = None if mesh is None else param_shardings(specs, mesh)
  return jax.jit(lambda key: spec.init(specs, key), out_shardings=shardings)
