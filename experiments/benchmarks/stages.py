"""The jitted stages of an iteration of a random model, compiled in advance."""

import dataclasses
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from configs.methods import grpo
from rl_jax import decoding, models
from rl_jax.decoding.drafts.settings import Drafts
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.learning import batch
from rl_jax.learning import score as score_lib
from rl_jax.learning import update as update_lib
from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer
from rl_jax.learning.state import sharded_state
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.models import packing
from rl_jax.models import params as params_lib
from rl_jax.planning import programs
from rl_jax.runs import assembly
from rl_jax.runtime import compilation

STAGES = ('generate', 'score', 'update')
PRESETS = {
  # 8M parameters; peers are timed with the same sizes.
  'small': models.ModelConfig(
    vocab_size=512,
    num_layers=8,
    width=256,
    num_heads=8,
    num_kv_heads=4,
    head_size=32,
    mlp_size=1024,
    tied_embeddings=False,
    qk_norm=True,
  ),
  'qwen2p5_1p5b': models.presets.PRESETS['Qwen2.5-1.5B'],
  'qwen2p5_0p5b': models.presets.PRESETS['Qwen2.5-0.5B'],
  'olmoe_1b_7b': models.presets.PRESETS['OLMoE-1B-7B'],
  'smollm2_135m': models.presets.PRESETS['SmolLM2-135M'],
  'tiny': models.presets.tiny(64),
}


@dataclasses.dataclass(frozen=True)
class Options:
  """The settings of the stages of a benchmark."""

  microbatches: int = 1
  mean_length: float = 0.0  # of responses; 0: no response ends early
  slots: int | None = None  # rows decoded at a time; None: all
  cache_tokens: int | None = None  # that slots share; None: all of each
  pack: bool = True  # updates, where the lengths allow it
  drafts: Drafts | None = None  # of speculative decoding


def ending_ids(cfg, mean_length):
  """End tokens; with random weights their number gives this mean length.

  Raises: ValueError for a length that no number of them has.
  """
  if not mean_length:
    return ()
  if not 1 <= mean_length <= cfg.vocab_size:
    raise ValueError(
      f'mean_length={mean_length}: expected 1 to {cfg.vocab_size}, the size of '
      'the vocabulary, of which at least one token ends a row'
    )
  return tuple(range(round(cfg.vocab_size / mean_length)))


def _engine(cfg, shape, mesh, options):
  """Returns what samples responses of the shape."""
  return make_engine(
    cfg,
    decoding.SamplingConfig(eos_ids=ending_ids(cfg, options.mean_length)),
    EngineConfig(
      group_size=shape.group_size,
      max_response_tokens=shape.new_tokens,
      slots=options.slots,
      cache_tokens=options.cache_tokens,
      speculative=options.drafts,
    ),
    mesh,
  )


class Stages:
  """The jitted stages of one shape; those that run are compiled in advance."""

  def __init__(self, cfg, shape, stage, mesh, options=Options()):
    engine = _engine(cfg, shape, mesh, options)
    self.drafts = options.drafts and engine.drafts
    rng = np.random.default_rng(0)
    prompts = (shape.num_prompts, shape.prompt_tokens)
    self.groups = np.arange(shape.num_prompts, dtype=np.int32)
    self.empty = engine.start(
      rng.integers(0, cfg.vocab_size, prompts, np.int32),
      np.ones(prompts, np.float32),
      self.groups,
      0,
      0,
    )
    self.key = assembly.run_key(0, mesh)
    optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-5))
    params = params_lib.init_params(cfg, self.key, mesh)
    self.state = sharded_state(Method(), optimizer, params, 0, mesh)
    # Without the KL term no reference is scored.
    self.method = grpo.get_method()
    self.method = self.method.replace(losses=self.method.losses[:1])
    self.method = self.method.as_arrays()
    self.compile_seconds = {}
    self.program_memory_gb = {}
    training = functools.partial(
      jax.jit,
      compiler_options=compilation.training_options(cfg.platform),
    )
    self.forward = Forward(model=cfg, microbatches=options.microbatches)
    self.generate = engine.generate
    if options.drafts is None:
      self.generate = self._compiled(
        'generate', engine.generate, params, traj=self.empty, key=self.key
      )
    self.full = self.generate(params, traj=self.empty, key=self.key)
    if self.drafts:
      self.drafts.metrics()  # forgets the first call, which remembers nothing
    rewards = rng.integers(0, 2, self.full.length_B.shape).astype(np.float32)
    self.rewarded = self.full.replace(reward_B=jnp.asarray(rewards))
    self.prefill = jax.jit(models.prefill, static_argnums=1)
    self.make_batch = jax.jit(batch.make_batch)
    self.batch, *_ = self.make_batch(self.method, self.rewarded, {})
    if stage == 'score':
      score = functools.partial(score_lib.score, self.forward)
      self.score = self._compiled(
        'score', training(score), params, self.full, self.method
      )
    if stage in ('update', 'step'):
      # Within a step every rollout has other lengths: no fixed capacity.
      pack = options.pack and stage == 'update'
      self._make_update(training, pack, optimizer)

  @property
  def capacity(self):
    """The capacity of a packed update, or None."""
    return self.forward.capacity

  @property
  def reserved_over_needed(self):
    """Temporary memory of a rollout, over keys and values of all its tokens."""
    cfg = self.forward.model
    number = jnp.dtype(cfg.compute_dtype).itemsize
    token = 2 * cfg.num_layers * cfg.num_kv_heads * cfg.head_size * number
    reserved = self.generate.memory_analysis().temp_size_in_bytes
    needed = int(self.full.length_B.sum()) * token
    return reserved * jax.device_count() / needed

  def _make_update(self, jit, pack, optimizer):
    if pack:
      length_NG = np.reshape(self.full.length_B, (len(self.groups), -1))
      tokens = self.full.response_BT.shape[1]
      self.forward = dataclasses.replace(
        self.forward, capacity=packing.capacity(length_NG, tokens)
      )
    update = functools.partial(
      update_lib.update_minibatch,
      self.forward,
      optimizer=optimizer,
      reuse_scores=False,
    )
    self.update = self._compiled(
      'update',
      jit(update, donate_argnames='state'),
      state=self.state,
      **self._update_arguments(self.batch),
    )

  def _compiled(self, name, function, *args, **kwargs):
    started = time.perf_counter()
    compiled = function.lower(*args, **kwargs).compile()
    self.compile_seconds[name] = time.perf_counter() - started
    memory = programs.peak_memory(compiled.memory_analysis())
    self.program_memory_gb[name] = memory / 1e9
    return compiled

  def _update_arguments(self, traj):
    return dict(
      batch=update_lib.Batch(
        frozen={}, method=self.method, traj=traj, key=self.key
      ),
      group_M=self.groups,
    )

  def call(self, stage):
    """Runs a stage, prefill only, or all stages of an iteration ('step')."""
    params = self.state.params
    if stage == 'generate':
      result = self.generate(params, traj=self.empty, key=self.key)
    elif stage == 'prefill':
      prompts = (self.empty.prompt_NP, self.empty.prompt_mask_NP)
      result = self.prefill(params, self.forward.model, *prompts)
    elif stage == 'score':
      result = self.score(params, self.full, self.method)
    else:
      traj = self.batch
      if stage == 'step':
        full = self.generate(params, traj=self.empty, key=self.key)
        jax.block_until_ready(full)  # as the host reads responses for rewards
        full = full.replace(reward_B=self.rewarded.reward_B)
        traj, *_ = self.make_batch(self.method, full, {})
      # With one update per rollout its own forward pass gives logp_old.
      self.state, result = self.update(
        state=self.state, **self._update_arguments(traj)
      )
    jax.block_until_ready((result, self.state.params))
