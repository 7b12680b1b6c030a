"""What a stage costs in theory, and what this machine can do at best."""

import dataclasses
import time

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Shape:
  """How much one call does."""

  num_prompts: int
  group_size: int
  prompt_tokens: int
  new_tokens: int

  @property
  def rows(self) -> int:
    """Responses."""
    return self.num_prompts * self.group_size


def model_flops(cfg, shape, stage):
  """FLOP of the model for one call of a stage."""
  heads = cfg.num_heads * cfg.head_size
  kv = cfg.num_kv_heads * cfg.head_size
  layer = cfg.width * (2 * heads + 2 * kv + 3 * cfg.mlp_size)
  output = cfg.width * cfg.vocab_size
  N, B = shape.num_prompts, shape.rows
  P, T = shape.prompt_tokens, shape.new_tokens
  fed = N * P + B * (T - 1)  # the last token is never fed
  visible = N * P * (P + 1) / 2 + B * (T - 1) * (P + T / 2)
  forward = (
    2 * fed * cfg.num_layers * layer
    + 4 * visible * cfg.num_layers * heads
    + 2 * B * T * output
  )
  times = {'generate': 1, 'score': 1, 'update': 3, 'step': 4}
  return forward * times[stage]


def least_bytes(cfg, shape, params):
  """Bytes that a rollout must read: weights and live cache at every step."""
  weights = sum(x.nbytes for x in jax.tree.leaves(params['model']))
  token = 2 * cfg.num_layers * cfg.num_kv_heads * cfg.head_size
  token *= jnp.dtype(cfg.compute_dtype).itemsize
  N, B = shape.num_prompts, shape.rows
  P, T = shape.prompt_tokens, shape.new_tokens
  cache = T * N * P * token + B * token * T * (T - 1) / 2
  return T * weights + cache


def seconds(function, repeats):
  """Wall seconds of each call after a first one."""
  return seconds_in_turn({'': function}, repeats)['']


def seconds_in_turn(functions, repeats, untimed=0):
  """The same of several functions by name; a slow minute hits all of them.

  untimed: calls before each that is timed. The host of a virtual machine may
  take memory back within a second, and bringing it back would be timed.
  """
  times = {name: [] for name in functions}
  for function in functions.values():
    function()
  for _ in range(repeats):
    for name, function in functions.items():
      for _ in range(untimed):
        function()
      started = time.perf_counter()
      function()
      times[name].append(time.perf_counter() - started)
  return times


def roofline(dtype, mesh):
  """(FLOP/s of matrix products, bytes/s of copies), on all devices at once."""
  by_rows = jax.NamedSharding(mesh, jax.P('data'))
  x = jnp.ones((2048 * mesh.size, 2048), dtype, device=by_rows)
  weight = jnp.ones((2048, 2048), dtype)
  y = jnp.ones((mesh.size << 25,), jnp.float32, device=by_rows)
  product, copy = jax.jit(jnp.matmul), jax.jit(lambda y: y + 1)
  best = min(seconds(lambda: product(x, weight).block_until_ready(), 5))
  moved = min(seconds(lambda: copy(y).block_until_ready(), 5))
  return 2 * x.size * 2048 / best, 2 * y.nbytes / moved
