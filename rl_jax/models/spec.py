"""Descriptions of parameters: shape, dtype, logical axes, initial values."""

from collections.abc import Callable
import dataclasses
import math
from typing import Any
import zlib

import jax
import jax.numpy as jnp

from rl_jax.types import Array

Init = Callable[[Array, tuple[int, ...], Any], Array]


def normal(stddev: float) -> Init:
  """Independent normal values with mean 0."""
  return lambda key, shape, dtype: (
    stddev * jax.random.normal(key, shape, jnp.float32)
  ).astype(dtype)


def ones(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
  """All 1."""
  del key
  return jnp.ones(shape, dtype)


def zeros(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
  """All 0."""
  del key
  return jnp.zeros(shape, dtype)


@dataclasses.dataclass(frozen=True)
class ParamSpec:
  """One parameter; logical_axes names each dimension (sharding.RULES)."""

  shape: tuple[int, ...]
  dtype: str
  logical_axes: tuple[str | None, ...]
  init: Init

  def __post_init__(self):
    if len(self.shape) != len(self.logical_axes):
      raise ValueError(
        f'ParamSpec.shape = {self.shape} and logical_axes = '
        f'{self.logical_axes} differ in length'
      )


def is_spec(x: Any) -> bool:
  """True for the leaves of a tree of specs."""
  return isinstance(x, ParamSpec)


def init(specs: Any, key: Array) -> Any:
  """Draws every parameter from a key of its own path.

  The key depends on the path alone, so adding or removing a parameter leaves
  the values of the others as they were.
  """

  def one(path, spec):
    name = jax.tree_util.keystr(path)
    leaf_key = jax.random.fold_in(key, zlib.crc32(name.encode()))
    return spec.init(leaf_key, spec.shape, spec.dtype)

  return jax.tree_util.tree_map_with_path(one, specs, is_leaf=is_spec)


def abstract(specs: Any) -> Any:
  """The same tree as jax.ShapeDtypeStruct, for eval_shape and checkpoints."""
  return jax.tree.map(
    lambda spec: jax.ShapeDtypeStruct(spec.shape, spec.dtype),
    specs,
    is_leaf=is_spec,
  )


def count(specs: Any) -> int:
  """Number of parameters."""
  leaves = jax.tree.leaves(specs, is_leaf=is_spec)
  return sum(math.prod(spec.shape) for spec in leaves)
