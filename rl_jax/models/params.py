"""Parameters of a ModelConfig: born sharded, trained or frozen."""

import functools
from typing import Any

import jax
from jax.sharding import Mesh

from rl_jax.models import spec, transformer
from rl_jax.runtime.mesh import param_shardings
from rl_jax.types import Array

# With adapters, only these top-level trees of the parameters are trained.
ADAPTED = ('lora', 'value_head')


def init_params(cfg: Any, key: Array, mesh: Mesh | None = None) -> Any:
  """Parameters of a ModelConfig, born sharded: never whole on one device."""
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


def split_trainable(
  model: transformer.ModelConfig, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
  """(trainable, frozen): with adapters the model itself is frozen."""
  names = ADAPTED if model.lora_rank else tuple(params)
  return (
    {k: v for k, v in params.items() if k in names},
    {k: v for k, v in params.items() if k not in names},
  )
