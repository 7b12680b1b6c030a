"""Parameters of a ModelConfig: created sharded, trained or frozen."""

import functools
from typing import Any

import jax
from jax.sharding import Mesh

from rl_jax.models import spec, transformer
from rl_jax.runtime.mesh import param_shardings
from rl_jax.types import Array

# With adapters, only these top-level trees of the parameters are trained.
ADAPTED = ('lora', 'value_head')
# Of bfloat16 weights the optimizer keeps the bits that float32 has besides.
TRAINED = ('float32', 'bfloat16')


def init_params(cfg: Any, key: Array, mesh: Mesh | None = None) -> Any:
  """Parameters of a ModelConfig; with a mesh no device holds all of them."""
  return init_missing(cfg, {}, key, mesh)


def init_missing(
  cfg: Any, params: Any, key: Array, mesh: Mesh | None = None
) -> Any:
  """The top-level trees of a ModelConfig (lora, ...) that params lack."""
  names = tuple(k for k in transformer.specs(cfg) if k not in params)
  return _initializer(cfg, names, mesh)(key) if names else {}


@functools.cache
def _initializer(cfg: Any, names: tuple[str, ...], mesh: Mesh | None) -> Any:
  """One program for all seeds."""
  specs = {name: transformer.specs(cfg)[name] for name in names}
  shardings = None if mesh is None else param_shardings(specs, mesh)
  return jax.jit(lambda key: spec.init(specs, key), out_shardings=shardings)


def shapes(cfg: Any, mesh: Any) -> dict[str, Any]:
  """jax.ShapeDtypeStruct of all parameters, sharded as on the mesh.

  The mesh may be abstract: nothing is allocated.
  """
  specs = transformer.specs(cfg)
  return jax.tree.map(
    lambda s, place: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=place),
    specs,
    param_shardings(specs, mesh),
    is_leaf=spec.is_spec,
  )


def split_trainable(
  model: transformer.ModelConfig, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
  """(trainable, frozen): with adapters the model itself is frozen.

  Raises: ValueError if trainable weights are float16: the optimizer has no
    master weights of these, and small updates would be rounded away.
  """
  names = ADAPTED if model.lora_rank else tuple(params)
  trainable = {k: v for k, v in params.items() if k in names}
  found = {str(x.dtype) for x in jax.tree.leaves(trainable)} - set(TRAINED)
  if found:
    raise ValueError(
      f'weights of type {", ".join(sorted(found))} cannot be trained: set '
      f'model.param_dtype to one of {TRAINED}, or model.lora_rank > 0'
    )
  return trainable, {k: v for k, v in params.items() if k not in names}


def cast(cfg: Any, params: dict[str, Any]) -> dict[str, Any]:
  """The parameters in the dtypes of a ModelConfig."""
  return jax.tree.map(
    lambda x, s: x if x.dtype == s.dtype else x.astype(s.dtype),
    params,
    transformer.specs(cfg),
  )
