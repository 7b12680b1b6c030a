"""Attention of prompts and responses by fused kernels of accelerators.

Fused kernels are fast for causal masks only, with or without a window. Where
some layers have a window, each takes one of two kernels. So each row becomes
one sequence of its group's prompt and its response, rotated to the left until
all padding is at the end, where no real token attends to it:

  [pad pad p p p | r r r r]  ->  [p p p r r r r pad pad]

The result is exact for any padding. The other layers still encode a prompt once
per group; attention itself processes it G times, but stores no array of scores.
Two kernel calls, one for the prompt and one for the response, merged by their
log-sum-exp would avoid that, but jax.nn.dot_product_attention rounds the
log-sum-exp to the compute dtype and stops its gradient.
"""

from collections.abc import Callable
import functools
from typing import Any, Literal, NamedTuple, Protocol, cast

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.runtime import layout
from rl_jax.types import Array

# Name of what the splash kernel keeps for its backward pass.
RESIDUALS = 'attention_residuals'
SPLASH_BLOCK = 128  # of queries and keys; sequences are multiples of it


class Causal(NamedTuple):
  """A causal mask of a kernel, and what its scores are limited to."""

  window: int | None = None  # tokens that a query sees, its own included
  cap: float | None = None  # scores become cap * tanh(score / cap)


CAUSAL = Causal()


class Kernel(Protocol):
  """Attention within rows."""

  def __call__(
    self, q: Array, k: Array, v: Array, causal: Causal = CAUSAL
  ) -> Array:
    """q [B, T, J, R, K], k and v [B, T, J, K] -> [B, T, J, R, K]."""
    ...


def _by_jax_nn(implementation: Literal['cudnn', 'xla']) -> Kernel:
  def attend(q, k, v, causal=CAUSAL):
    B, T, J, R, K = q.shape
    window = causal.window
    if causal.cap is not None:
      raise ValueError('jax.nn.dot_product_attention has no cap of scores')
    out = jax.nn.dot_product_attention(
      q.reshape(B, T, J * R, K),
      k,
      v,
      scale=1.0,  # queries are scaled already
      is_causal=True,
      local_window_size=None if window is None else (window - 1, 0),
      implementation=implementation,
    )
    return out.reshape(q.shape)

  return attend


def splash(
  q: Array,
  k: Array,
  v: Array,
  causal: Causal = CAUSAL,
  interpret: bool = False,
) -> Array:
  """The Pallas kernel for TPU; interpret runs it anywhere, slowly."""
  from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel,
    splash_attention_mask,
  )

  B, T, J, R, K = q.shape
  mask: Any = splash_attention_mask.CausalMask((T, T))
  if causal.window is not None:
    window = (causal.window - 1, 0)
    mask = splash_attention_mask.LocalMask((T, T), window, offset=0)
  kernel = splash_attention_kernel.make_splash_mha(
    splash_attention_mask.MultiHeadMask([mask] * (J * R)),
    head_shards=1,
    q_seq_shards=1,
    residual_checkpoint_name=RESIDUALS,
    attn_logits_soft_cap=causal.cap,
    interpret=interpret,
  )

  def heads_first(x):
    return jnp.swapaxes(x.reshape(B, T, -1, K), 1, 2)

  attend = cast(Callable, jax.vmap(kernel))  # residuals are not asked for
  out = attend(heads_first(q), heads_first(k), heads_first(v))
  return jnp.swapaxes(out, 1, 2).reshape(q.shape)


# Name -> (kernel, divisor of the sequence length). JAX has no backward pass of
# cuDNN for odd lengths.
KERNELS = {'cudnn': (_by_jax_nn('cudnn'), 2), 'splash': (splash, SPLASH_BLOCK)}
REFERENCE = _by_jax_nn('xla')  # the same with plain products


def refusal(
  name: str, dtype: str, head_size: int, causal: Causal = CAUSAL
) -> str | None:
  """Why the installed libraries refuse a kernel and its gradient; else None.

  Nothing is compiled. 'plain' is never refused.
  """
  if name not in KERNELS:
    return None
  kernel, multiple = KERNELS[name]
  q = jax.ShapeDtypeStruct((1, multiple, 1, 1, head_size), dtype)
  k = jax.ShapeDtypeStruct((1, multiple, 1, head_size), dtype)

  def total(*arrays):
    return kernel(*arrays).astype(jnp.float32).sum()

  try:
    jax.eval_shape(jax.grad(total, argnums=(0, 1, 2)), q, k, k)
  except (RuntimeError, ValueError, ImportError) as error:
    return str(error).splitlines()[0]
  return None


def attend(
  name: str,
  prompt: tuple,
  response: tuple | None,
  mask_NP: Array,
  causal: Causal = CAUSAL,
  windowed: Array | None = None,
) -> Array:
  """Attention within prompts, and of responses to prompt and themselves.

  prompt: q [N, P, J, R, K], k and v [N, P, J, K], left-padded. response: the
  same with [N, G, S, ...], right-padded; None for prompts only. Returns [N,
  P + G * S, J, R, K]; the output at padding is finite and otherwise arbitrary.
  windowed: whether the layer has the window of `causal`; None: it has.
  """
  (N, P), S = mask_NP.shape, 0
  rows = [x[:, None] for x in prompt]
  if response is not None:
    S = response[0].shape[2]
    rows = [_append(*parts) for parts in zip(rows, response, strict=True)]
  kernel, multiple = KERNELS[name]
  end = -(P + S) % multiple
  pad_N = P - mask_NP.astype(jnp.int32).sum(axis=1)
  turned = []
  for x in rows:
    x = jnp.pad(x, [(0, 0), (0, 0), (0, end)] + [(0, 0)] * (x.ndim - 3))
    x = _turn(x, pad_N)
    turned.append(x.reshape(-1, *x.shape[2:]))
  axes = ('rows', None, 'kv_heads', None, None)
  layer = functools.partial(kernel, causal=causal)
  arrays, split = turned, [axes, axes[:-1], axes[:-1]]
  if windowed is not None:
    arrays, split = [*turned, windowed], [*split, ()]
    layer = functools.partial(_either, kernel, causal)
  out = layout.on_parts(layer, arrays, split)
  out = _turn(out.reshape(N, -1, *out.shape[1:]), -pad_N)
  own = out[:, :, P : P + S].reshape(N, -1, *out.shape[3:])
  return jnp.concatenate([out[:, 0, :P], own], axis=1)


def _either(kernel: Kernel, causal: Causal, q, k, v, windowed) -> Array:
  """The kernel with or without the window."""
  local = functools.partial(kernel, causal=causal)
  whole = functools.partial(kernel, causal=causal._replace(window=None))
  return lax.cond(windowed, local, whole, q, k, v)


def _append(prompt: Array, response: Array) -> Array:
  """[N, 1, P, ...] before each of [N, G, S, ...].

  The copies pass through float32, so that their gradients are summed in it.
  """
  shape = (*response.shape[:2], *prompt.shape[2:])
  copies = jnp.broadcast_to(prompt.astype(jnp.float32), shape)
  return jnp.concatenate([copies.astype(prompt.dtype), response], axis=2)


@jax.custom_vjp
def _turn(x: Array, shift_N: Array) -> Array:
  """Rotates axis 2 of x [N, G, T, ...] to the left.

  The gradient is the opposite rotation: a gather, where autodiff would scatter.
  """
  length = x.shape[2]
  index_NT = (jnp.arange(length)[None] + shift_N[:, None]) % length

  def take(y, index_T):
    return y.at[:, index_T].get(mode='promise_in_bounds')

  return jax.vmap(take)(x, index_NT)


_turn.defvjp(
  lambda x, shift_N: (_turn(x, shift_N), shift_N),
  lambda shift_N, g: (_turn(g, -shift_N), None),
)


def saveable(policy: Callable) -> Callable:
  """A remat policy that also keeps what kernels need backwards."""
  named = jax.checkpoint_policies.save_only_these_names(RESIDUALS)

  @functools.wraps(policy)
  def saved(primitive, *args, **params):
    # JAX does not name cuDNN's residuals, so its primitive is recognised.
    cudnn = primitive.name.startswith('dot_product_attention_fwd')
    return (
      cudnn
      or policy(primitive, *args, **params)
      or named(primitive, *args, **params)
    )

  return saved
