"""Operations of bfloat16 compute whose gradients autodiff would get wrong.

Sums over tokens are taken in float32: in bfloat16 a sum of equal terms stops
growing after 256 of them. Products have operands of the compute dtype: with a
float32 operand they run at half the speed or less. With float32 compute all
three are the gradients of autodiff.
"""

import functools

import jax
import jax.numpy as jnp

from rl_jax.runtime import layout
from rl_jax.types import Array


def lookup(table: Array, token: Array, dtype: str) -> Array:
  """Rows of the table [V, D] in dtype, with gradients summed in float32."""
  return _lookup(table, token, dtype, table.shape[0], table.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _lookup(table, token, dtype, rows, param_dtype) -> Array:
  del rows, param_dtype
  # Replicated over fsdp: a gather along a split width would copy everything.
  return layout.constrain(table.astype(dtype), 'vocab', None)[token]


def _lookup_gradient(dtype, rows, param_dtype, token, g):
  del dtype
  zeros = jnp.zeros((rows, g.shape[-1]), jnp.float32)
  zeros = layout.constrain(zeros, 'vocab', None)
  sums = zeros.at[token].add(g.astype(jnp.float32))
  return sums.astype(param_dtype), None


_lookup.defvjp(
  lambda table, token, *static: (_lookup(table, token, *static), token),
  _lookup_gradient,
)


def add_bias(y: Array, bias: Array) -> Array:
  """y + bias in float32, as is then the sum that is the bias's gradient.

  The bias is rounded to y's dtype first, as it is in the sampler's weights.
  """
  bias32 = bias.astype(y.dtype).astype(jnp.float32)
  bias32 = jnp.broadcast_to(bias32, y.shape)
  return (y.astype(jnp.float32) + bias32).astype(y.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def product(equation: str, x: Array, y: Array) -> Array:
  """The einsum in float32 of operands of one dtype, backward products too."""
  return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


def _product_gradient(equation, operands, g):
  _, vjp = jax.vjp(lambda *xy: jnp.einsum(equation, *xy), *operands)
  return vjp(g.astype(operands[0].dtype))


product.defvjp(
  lambda equation, *xy: (product(equation, *xy), xy), _product_gradient
)
