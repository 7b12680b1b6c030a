"""One measurement on an accelerator: a stage, a model, a number of rows.

Times are medians. Shares compare with what the same process reaches:

  generate  bytes that decoding must move (weights in the compute dtype once a
            step, the live part of the cache, prompts once a group), at the rate
            of a copy, over the seconds of decoding (prefill taken off)
  update    FLOP of the model (6 a weight and token, attention over what is
            visible, nothing twice), at the rate of a matrix product, over its
            seconds
"""

from collections.abc import Callable
import functools
import time

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from configs.methods import grpo
from experiments.benchmarks.stages import first_state
from rl_jax import models, rollouts
from rl_jax.learning import batch
from rl_jax.learning import update as update_lib
from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer
from rl_jax.learning.statistics import Forward
from rl_jax.models import params as params_lib
from rl_jax.models import platform
from rl_jax.planning import costs
from rl_jax.rollouts import decode
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import POLICY

PRESETS = {
  'qwen2p5_1p5b': models.presets.PRESETS['Qwen2.5-1.5B'],
  'smollm2_135m': models.presets.PRESETS['SmolLM2-135M'],
  'tiny': models.presets.tiny(64),
}
Timer = Callable[[Callable[[], None]], float]  # seconds of a call
CHAIN = 8  # operations in a timed call, so that its start does not count


def rates(dtype: str, size: int) -> tuple[float, float]:
  """(FLOP/s of products of [size, size] matrices, bytes/s of copies)."""
  x = jnp.ones((size, size), dtype)
  y = jnp.ones((4 * size, size), jnp.float32)
  repeated = lambda step: jax.jit(
    lambda z: lax.fori_loop(0, CHAIN, lambda _, z: step(z), z)
  )
  # Scaled to stay 1; a product with the array itself cannot be simplified.
  product = repeated(lambda z: (z @ x) * jnp.asarray(1 / size, dtype))
  copy = repeated(lambda z: z + 1)
  best = lambda f, z: min(costs.seconds(lambda: f(z).block_until_ready(), 5))
  flop = 2 * size**3 * CHAIN / best(product, x)
  return flop, 2 * y.nbytes * CHAIN / best(copy, y)


def decode_bytes(cfg: models.ModelConfig, shape: costs.Shape) -> dict[str, int]:
  """What one rollout moves after prefill, in bytes.

  needed: weights and live cache. cache_read: of the cache, what decode_step
  reads: the places of all max_new_tokens at every step, not just those filled.
  logits: one pass over the logits of every step; sampling makes several.
  """
  item = jnp.dtype(cfg.compute_dtype).itemsize
  tree = models.specs(cfg)['model']
  if not cfg.tied_embeddings:  # of the input table a step reads a row a token
    del tree['embed']
  leaves = jax.tree.leaves(tree, is_leaf=models.is_spec)
  weights = item * sum(int(np.prod(s.shape)) for s in leaves)
  token = 2 * cfg.num_layers * cfg.num_kv_heads * cfg.head_size * item
  steps = shape.new_tokens - 1  # the first token comes from prefill
  prompts = steps * shape.num_prompts * shape.prompt_tokens * token
  live = shape.rows * token * steps * (steps + 1) // 2
  return {
    'needed': steps * weights + prompts + live,
    'weights': steps * weights,
    'cache_needed': prompts + live,
    'cache_read': prompts + shape.rows * token * steps * steps,
    'logits': 4 * steps * shape.rows * cfg.vocab_size,
  }


def _empty(cfg, shape):
  rng = np.random.default_rng(0)
  prompts = (shape.num_prompts, shape.prompt_tokens)
  return rollouts.start_trajectories(
    rng.integers(0, cfg.vocab_size, prompts, np.int32),
    np.ones(prompts, np.float32),
    np.arange(shape.num_prompts, dtype=np.int32),
    group_size=shape.group_size,
    max_response_tokens=shape.new_tokens,
  )


def _compiled(function, *args, **kwargs):
  """(executable, seconds to trace and compile)."""
  started = time.perf_counter()
  executable = function.lower(*args, **kwargs).compile()
  return executable, time.perf_counter() - started


def generate(cfg, shape, byte_rate: float, timed: Timer) -> dict[str, float]:
  """Every row generates all its tokens."""
  decode.MOST_WIDTHS = 1  # nothing ends: narrower loops would only be compiled
  params = params_lib.init_params(cfg, jax.random.key(0))
  traj, key = _empty(cfg, shape), jax.random.key(1)
  sample, compile_seconds = _compiled(
    jax.jit(
      functools.partial(
        rollouts.generate,
        cfg=cfg,
        sampling=rollouts.SamplingConfig(),
        max_new_tokens=shape.new_tokens,
      )
    ),
    params,
    traj=traj,
    key=key,
  )
  prefill = jax.jit(models.prefill, static_argnums=1)
  whole = timed(
    lambda: jax.block_until_ready(sample(params, traj=traj, key=key))
  )
  first = timed(
    lambda: jax.block_until_ready(
      prefill(params, cfg, traj.prompt_NP, traj.prompt_mask_NP)
    )
  )
  moved = decode_bytes(cfg, shape)
  seconds = max(whole - first, 1e-9)
  return {
    'seconds': whole,
    'prefill_seconds': first,
    'compile_seconds': compile_seconds,
    'tokens_per_second': shape.rows * shape.new_tokens / whole,
    'share': moved['needed'] / byte_rate / seconds,
    **{f'bytes_{name}': value for name, value in moved.items()},
  }


def update(
  cfg, shape, flop_rate: float, microbatch_rows: int, timed: Timer
) -> dict[str, float]:
  """One optimizer step of GRPO on random responses of full length."""
  rng, traj = np.random.default_rng(1), _empty(cfg, shape)
  size = traj.response_BT.shape
  ones = jnp.ones(size, jnp.float32)
  traj = traj.replace(
    response_BT=jnp.asarray(rng.integers(0, cfg.vocab_size, size), jnp.int32),
    kind_BT=jnp.full(size, POLICY, jnp.int32),
    mask_BT=ones,
    length_B=jnp.full(size[0], size[1], jnp.int32),
    reward_B=jnp.asarray(rng.integers(0, 2, size[0]), jnp.float32),
  )
  method = grpo.get_method()
  method = method.replace(losses=method.losses[:1]).as_arrays()  # no KL term
  traj, *_ = jax.jit(batch.make_batch)(method, traj, {})
  optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-6))
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  key = jax.random.key(0)
  state = first_state(cfg, optimizer, key, mesh)
  pieces = max(1, shape.rows // microbatch_rows)
  groups = jnp.arange(shape.num_prompts)
  arguments = dict(
    batch=update_lib.Batch(frozen={}, method=method, traj=traj, key=key),
    group_M=groups,
  )
  step, compile_seconds = _compiled(
    jax.jit(
      functools.partial(
        update_lib.update_minibatch,
        Forward(model=cfg, microbatches=pieces),
        optimizer=optimizer,
        reuse_scores=False,
      ),
      donate_argnames='state',
    ),
    state=state,
    **arguments,
  )

  def once():
    nonlocal state
    state, metrics = step(state=state, **arguments)
    jax.block_until_ready((state.params, metrics))

  seconds = timed(once)
  flops = costs.model_flops(cfg, shape, 'update')
  return {
    'seconds': seconds,
    'compile_seconds': compile_seconds,
    'microbatches': pieces,
    'tokens_per_second': shape.rows * shape.new_tokens / seconds,
    'flop': flops,
    'share': flops / flop_rate / seconds,
  }


def measure(
  preset: str, stage: str, shape: costs.Shape, repeats: int, microbatch: int
) -> dict:
  """The row of one cell; cfg is what this platform computes with."""
  cfg = platform.resolve(PRESETS[preset])
  flop_rate, byte_rate = rates(
    cfg.compute_dtype, 256 if preset == 'tiny' else 8192
  )
  timed = lambda call: float(np.median(costs.seconds(call, repeats)))
  if stage == 'generate':
    row = generate(cfg, shape, byte_rate, timed)
  else:
    row = update(cfg, shape, flop_rate, microbatch, timed)
  return {
    'device': jax.devices()[0].device_kind,
    'jax': jax.__version__,
    'compute_dtype': cfg.compute_dtype,
    'attention': cfg.attention,
    'matrix_flop_per_second': flop_rate,
    'copy_bytes_per_second': byte_rate,
    **row,
  }
