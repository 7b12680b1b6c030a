"""Float32 master weights of bfloat16 parameters, two bytes a weight.

A bfloat16 number has the upper half of the bits of a float32 number. The
optimizer's state keeps the lower half, so that parameter and remainder are the
master weight exactly:

  theta_32 = (parameter, remainder)      theta_32 += update
  parameter = theta_32 rounded to the nearest bfloat16, halves away from zero

so steps that are too small to change a parameter add up until one does.

Source: `store_param_remainders` of DistributedFusedAdam in NVIDIA Apex; from
memory, its code was not compared.
"""

from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from rl_jax.types import Array

_HALF = 0x8000  # of the last bit of a bfloat16 number, in those of float32


class MasterWeights(NamedTuple):
  """State of the optimizer, and the lower bits of the master weights.

  remainder: uint16 of each bfloat16 parameter, optax.MaskedNode() of others.
  """

  remainder: Any
  inner: Any


def with_master_weights(
  inner: optax.GradientTransformation,
) -> optax.GradientTransformation:
  """The optimizer, which sees float32 weights in place of bfloat16 ones.

  Where no parameter is bfloat16 it is the plain optimizer. Gradients and
  updates of bfloat16 parameters are float32.
  """

  def init(params: Any):
    if not any(_is_half(x) for x in jax.tree.leaves(params)):
      return inner.init(params)

    def zeros(p: Array):
      return (
        jnp.zeros(p.shape, jnp.uint16) if _is_half(p) else optax.MaskedNode()
      )

    masters = jax.tree.map(
      lambda p: p.astype(jnp.float32) if _is_half(p) else p, params
    )
    return MasterWeights(jax.tree.map(zeros, params), inner.init(masters))

  def update(updates: Any, state: Any, params: Any = None):
    if not isinstance(state, MasterWeights):
      return inner.update(updates, state, params)
    masters = jax.tree.map(
      lambda p, low: joined(p, low) if _is_half(p) else p,
      params,
      state.remainder,
    )
    updates, after = inner.update(updates, state.inner, masters)
    steps = jax.tree.map(_step, params, masters, updates)

    def take(i: int):
      return jax.tree.map(lambda _, step: step[i], params, steps)

    return take(0), MasterWeights(take(1), after)

  return optax.GradientTransformation(init, update)


def split(master: Array) -> tuple[Array, Array]:
  """Float32 -> (bfloat16, uint16 remainder)."""
  bits = lax.bitcast_convert_type(master, jnp.uint32)
  high = ((bits + jnp.full_like(bits, _HALF)) >> 16).astype(jnp.uint16)
  return lax.bitcast_convert_type(high, jnp.bfloat16), bits.astype(jnp.uint16)


def joined(param: Array, remainder: Array) -> Array:
  """(bfloat16, uint16 remainder) -> float32, the inverse of split."""
  high = lax.bitcast_convert_type(param, jnp.uint16).astype(jnp.uint32)
  low = remainder.astype(jnp.uint32)
  rounded_up = (low >= _HALF).astype(jnp.uint32)
  return lax.bitcast_convert_type((high - rounded_up) << 16 | low, jnp.float32)


def _step(param: Array, master: Any, update: Array):
  """(what to add to the parameter, the next remainder)."""
  if not _is_half(param):
    return update, optax.MaskedNode()
  after, low = split(master + update)
  before, after = param.astype(jnp.float32), after.astype(jnp.float32)
  difference = after - before
  # A step by five orders of magnitude is rounded when it is added; the master
  # weight is then the parameter itself.
  exact = before + difference == after
  return difference, jnp.where(exact, low, 0).astype(jnp.uint16)


def _is_half(x: Any) -> bool:
  return x.dtype == jnp.bfloat16
