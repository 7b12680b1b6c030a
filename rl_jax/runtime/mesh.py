"""Mesh axes, and which logical axis of an array lies on which of them."""

import dataclasses
import math
from typing import Any

import jax
from jax.experimental import mesh_utils
from jax.sharding import (
  AbstractMesh,
  AxisType,
  Mesh,
  NamedSharding,
  PartitionSpec,
)
import numpy as np

from rl_jax import checks
from rl_jax.checks import INT32, checked, ranged

SEQUENCE = 'sequence'
COPIES = 'data'  # of the parameters
AXES = (COPIES, 'fsdp', SEQUENCE, 'tensor')
ROW_AXES = (COPIES, 'fsdp')

# Logical axis -> mesh axes. Axes that do not divide a size are left out, the
# last first: a vocabulary of 19 characters is replicated, not an error.
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
  'experts': 'tensor',  # whole ones; then their hidden units are not split
}


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class MeshConfig:
  """Devices along each mesh axis.

  data: copies of the parameters; null: all devices that the other axes leave,
  or as many of them as share a batch evenly (config.on_devices). fsdp: splits
  rows and parameters. sequence: splits the tokens of responses in score and
  update, and rows in sampling. tensor: splits heads, MLP (or
  experts) and vocabulary.

  rollout_devices: that sample while the others train, with whole copies of the
  weights; the axes are those of the others. Needs rollout.staleness. 0: all
  devices do both, in turn.
  """

  data: int | None = ranged(None, 1, INT32)
  fsdp: int = ranged(1, 1, INT32)
  sequence: int = ranged(1, 1, INT32)
  tensor: int = ranged(1, 1, INT32)
  rollout_devices: int = ranged(0, 0, INT32)

  def sizes(self, devices: int = 1) -> dict[str, int]:
    """Devices along each axis; data by default what so many devices leave."""
    given = checks.values(self, AXES)
    if self.data is None:
      others = math.prod(n for n in given.values() if n is not None)
      given['data'] = max(1, (devices - self.rollout_devices) // others)
    return given


def make_mesh(cfg: MeshConfig, devices: list | None = None) -> Mesh:
  """The mesh of all devices, by the topology of the hardware.

  Devices of several slices keep their order, so that the first axis crosses
  slices.

  Raises:
    ValueError: the axes do not multiply to the number of devices.
  """
  devices = jax.devices() if devices is None else devices
  shape = tuple(cfg.sizes(len(devices)).values())
  if math.prod(shape) != len(devices):
    axes = ' '.join(f'{axis}={n}' for axis, n in zip(AXES, shape, strict=True))
    raise ValueError(
      f'mesh {axes} needs {math.prod(shape)} devices, but there are '
      f'{len(devices)}'
    )
  if len({getattr(device, 'slice_index', 0) for device in devices}) > 1:
    grid = np.asarray(devices).reshape(shape)
  else:
    grid = mesh_utils.create_device_mesh(
      shape, devices, allow_split_physical_axes=True
    )
  return Mesh(grid, AXES, axis_types=(AxisType.Auto,) * len(AXES))


def abstract_mesh(cfg: MeshConfig) -> AbstractMesh:
  """The mesh without devices, for shapes and their shardings."""
  shape = tuple(cfg.sizes().values())
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


def partition(shape, logical_axes, sizes: dict[str, int]) -> PartitionSpec:
  """The PartitionSpec that RULES give an array on mesh axes of these sizes."""
  pairs = zip(shape, logical_axes, strict=True)
  return PartitionSpec(*(axes_of(*pair, sizes) or None for pair in pairs))


def param_shardings(specs: Any, mesh: Mesh) -> Any:
  """NamedSharding of every ParamSpec in the tree."""
  sizes = dict(mesh.shape)
  return jax.tree.map(
    lambda spec: NamedSharding(
      mesh, partition(spec.shape, spec.logical_axes, sizes)
    ),
    specs,
    is_leaf=lambda x: hasattr(x, 'logical_axes'),
  )


def rows(mesh: Mesh) -> NamedSharding:
  """Arrays whose first axis is prompts or rows."""
  return NamedSharding(mesh, PartitionSpec(ROW_AXES))


def sampled_rows(mesh: Mesh, num_prompts: int) -> NamedSharding:
  """The same while so many prompts are sampled, as layout.by_rows splits."""
  axes = axes_of(num_prompts, 'sampled_rows', dict(mesh.shape))
  return NamedSharding(mesh, PartitionSpec(axes))


def replicated(mesh: Mesh) -> NamedSharding:
  """Every device holds the whole array."""
  return NamedSharding(mesh, PartitionSpec())


def shardings_of(tree: Any) -> Any:
  """The shardings of a tree of arrays, to fix those of a jitted result."""
  return jax.tree.map(lambda x: x.sharding, tree)


def spans(mesh: Mesh | AbstractMesh | None) -> int:
  """Number of parts that a mesh splits the tokens of responses into."""
  return 1 if mesh is None else dict(mesh.shape).get(SEQUENCE, 1)
