"""The state of training at step 0: one function for every way of running."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from rl_jax.method import Method
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import LEARNED, TrainState


def fresh_state(
  method: Method,
  optimizer: optax.GradientTransformation,
  params: Any,
  num_ids: int,
) -> TrainState:
  """Step 0, as a pure function; params gain what pieces learn.

  num_ids: prompts of the task, over which stateful pieces keep tables; ids that
  are skipped while training count too.
  """
  params = {**params, **_learned(method)}
  return TrainState(
    step=jnp.zeros((), jnp.int32),
    params=params,
    opt_state=optimizer.init(params),
    method_state=method.init_state(num_ids),
    skipped=jnp.zeros((), jnp.int32),
  )


def state_shapes(
  method: Method,
  optimizer: optax.GradientTransformation,
  params: Any,
  num_ids: int,
  mesh: Any,
) -> TrainState:
  """Shapes and shardings of fresh_state; nothing is allocated.

  params: arrays, or shapes with shardings. Moments have the sharding of
  their parameters (jit by itself could not infer it, as zeros do not depend on
  them); everything else is replicated.
  """
  shapes = jax.eval_shape(
    lambda p: fresh_state(method, optimizer, p, num_ids), params
  )
  replicated = mesh_lib.replicated(mesh)

  def put(x: jax.ShapeDtypeStruct, place: jax.sharding.Sharding):
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)

  whole = jax.tree.map(lambda x: put(x, replicated), shapes)
  given = jax.tree.map(lambda x: put(x, x.sharding), params)
  params = {**whole.params, **given}
  return whole.replace(
    params=params, opt_state=_as_parameters(whole.opt_state, params)
  )


def _as_parameters(opt_state: Any, params: Any):
  """Shapes of an optimizer's state, with the shardings of parameters.

  What lies in the state below the path of a parameter is sharded as it, if it
  has its shape, or numbers for parts of its last axis (scales of blocks). A sum
  over rows (Adafactor) or a count is replicated.
  """
  by_path = dict(jax.tree.leaves_with_path(params))

  def one(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct):
    for start in range(len(path)):
      param = by_path.get(path[start:])
      if param is not None and _divided(leaf, param):
        return jax.ShapeDtypeStruct(
          leaf.shape, leaf.dtype, sharding=param.sharding
        )
    return leaf

  return jax.tree.map_with_path(one, opt_state)


def _divided(leaf: jax.ShapeDtypeStruct, param: jax.ShapeDtypeStruct):
  """Returns whether the sharding of the parameter divides the leaf as it does
  it.
  """
  if leaf.shape == param.shape:
    return True
  if leaf.ndim != param.ndim or leaf.shape[:-1] != param.shape[:-1]:
    return False
  own, rest = param.sharding.shard_shape(param.shape)[-1], leaf.shape[-1]
  return rest % (param.shape[-1] // own) == 0


def sharded_state(
  method: Method,
  optimizer: optax.GradientTransformation,
  params: Any,
  num_ids: int,
  mesh: jax.sharding.Mesh,
) -> TrainState:
  """fresh_state of parameters on the mesh; every part is sharded."""
  shapes = state_shapes(method, optimizer, params, num_ids, mesh)

  def rest(params: Any):
    """All but the parameters that are there already."""
    state = fresh_state(method, optimizer, params, num_ids)
    return state.replace(params=_learned(method))

  learned = {name: shapes.params[name] for name in _learned(method)}
  shardings = mesh_lib.shardings_of(shapes.replace(params=learned))
  state = jax.jit(rest, out_shardings=shardings)(params)
  return state.replace(params={**params, **state.params})


def _learned(method: Method):
  learned = method.init_params()
  return {LEARNED: learned} if learned else {}
