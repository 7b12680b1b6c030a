"""The configuration of one experiment: a tree of frozen dataclasses."""

import dataclasses
import math
from typing import Any

from rl_jax import method as method_lib
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.models import platform
from rl_jax.models.transformer import ModelConfig
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.types import check_choice, check_range


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelSource:
  """Where the policy comes from.

  path: a model directory, a Hugging Face directory or a GGUF file; None means
  random initial weights of `config`, with a tokenizer made by the task. With a
  path, `config` only serves to plan memory before the files are there.
  compute_dtype, attention: 'auto' chooses by platform (accelerators.py).
  """

  path: str | None = None
  config: ModelConfig | None = None
  compute_dtype: str = platform.AUTO
  attention: str = platform.AUTO  # 'plain', 'cudnn' or 'splash'
  value_head: bool = False
  lora_rank: int = 0
  remat: bool = False

  def __post_init__(self):
    check_choice(self, 'compute_dtype', platform.COMPUTE_DTYPES)
    check_choice(self, 'attention', platform.ATTENTION)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RolloutConfig:
  """How many prompts and samples an iteration draws, and how long.

  slots: rows that are decoded at a time, on all devices; a row that ends makes
    room for the next. Memory and speed only, never mathematics. None: all rows.
  """

  num_prompts: int = 64
  group_size: int = 8
  max_prompt_tokens: int = 64
  max_response_tokens: int = 32
  temperature: float = 1.0
  stop: tuple[str, ...] = ()  # one-token texts that end a response, as '\n'
  overlong_prompt: str = 'error'  # or 'skip'
  max_rounds: int = 10  # generation rounds of dynamic sampling
  slots: int | None = None

  def __post_init__(self):
    for field in ('num_prompts', 'group_size', 'max_prompt_tokens'):
      check_range(self, field, 1)
    check_range(self, 'max_response_tokens', 1)
    check_range(self, 'max_rounds', 1)
    check_range(self, 'slots', 1)
    check_range(self, 'temperature', 0.0, open_low=True)
    check_choice(self, 'overlong_prompt', ('error', 'skip'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateConfig:
  """How a rollout becomes optimizer steps; counts are prompts (groups).

  minibatch_prompts: one optimizer step each; None is the whole rollout.
  microbatch_prompts: memory only, never mathematics; None is one piece.
  pack: where the responses of an iteration are at most half full, all groups
    alike, padding takes part in attention alone. Memory and speed only, never
    mathematics; a second program is compiled when it is first used.
  """

  epochs: int = 1
  minibatch_prompts: int | None = None
  microbatch_prompts: int | None = None
  pack: bool = True

  def __post_init__(self):
    check_range(self, 'epochs', 1)
    check_range(self, 'minibatch_prompts', 1)
    check_range(self, 'microbatch_prompts', 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
  """Greedy accuracy on a split every so many iterations (0: never)."""

  every: int = 0
  split: str = 'validation'
  num_prompts: int = 128
  num_samples: int = 0  # further samples a prompt, for pass@k
  batch_prompts: int = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
  """When to save, and what to do when saving fails."""

  every: int = 10
  keep_last: int = 2
  keep_best: int = 1
  best_metric: str = 'evaluation/pass_at_1'
  on_save_error: str = 'stop'  # or 'warn'

  def __post_init__(self):
    check_range(self, 'every', 1)
    check_range(self, 'keep_last', 1)
    check_range(self, 'keep_best', 0)
    check_choice(self, 'on_save_error', ('stop', 'warn'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifierConfig:
  """Reward workers: 0 scores in this process (trusted, fast tasks only).

  memory_limit_bytes: address space of a worker, so that a memory bomb costs
    its sample and not the run; null: no limit.
  """

  num_workers: int = 0
  timeout_seconds: float = 10.0
  memory_limit_bytes: int | None = 8 << 30

  def __post_init__(self):
    check_range(self, 'num_workers', 0)
    check_range(self, 'timeout_seconds', 0.0, open_low=True)
    check_range(self, 'memory_limit_bytes', 1 << 20)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuardConfig:
  """Limits that stop a run before it wastes its budget."""

  max_skipped_in_a_row: int = 3  # updates with a non-finite gradient
  max_logp_gap: float | None = 1.0  # nats, sampler against trainer; None: off
  log_rollouts: int = 4  # prompts an iteration in rollouts.jsonl


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
  """Everything that decides the numbers of a run."""

  seed: int = 0
  iterations: int = 100
  task: Any
  method: method_lib.Method
  model: ModelSource = ModelSource()
  rollout: RolloutConfig = RolloutConfig()
  update: UpdateConfig = UpdateConfig()
  optimizer: OptimizerConfig = OptimizerConfig()
  mesh: MeshConfig = MeshConfig()
  evaluation: EvaluationConfig = EvaluationConfig()
  checkpoint: CheckpointConfig = CheckpointConfig()
  verifier: VerifierConfig = VerifierConfig()
  guards: GuardConfig = GuardConfig()

  def __post_init__(self):
    check_range(self, 'iterations', 0)


def validate(config: ExperimentConfig) -> None:
  """Raises ValueError before anything is compiled if parts do not fit."""
  rollout, update, mesh = config.rollout, config.update, config.mesh
  method_lib.validate(
    config.method,
    group_size=rollout.group_size,
    has_value_head=config.model.value_head,
  )
  if hasattr(config.method.rollout, 'check_task'):
    config.method.rollout.check_task(config.task)
  minibatch = update.minibatch_prompts or rollout.num_prompts
  microbatch = update.microbatch_prompts or minibatch
  row_shards = mesh.data * mesh.fsdp

  def divides(small_name, small, large_name, large):
    if large % small:
      raise ValueError(
        f'{small_name} = {small} must divide {large_name} = {large}'
      )

  divides(
    'update.minibatch_prompts',
    minibatch,
    'rollout.num_prompts',
    rollout.num_prompts,
  )
  divides('update.microbatch_prompts', microbatch, 'the minibatch', minibatch)
  if rollout.slots is not None:
    sizes = dataclasses.asdict(mesh)
    axes = mesh_lib.axes_of(rollout.num_prompts, 'sampled_rows', sizes)
    divides(
      ' * '.join(f'mesh.{axis}' for axis in axes),
      math.prod(sizes[axis] for axis in axes),
      'rollout.slots',
      rollout.slots,
    )
  # Whole groups on every row shard: group statistics need no communication.
  divides('mesh.data * mesh.fsdp', row_shards, 'the microbatch', microbatch)
  divides(
    'mesh.sequence',
    mesh.sequence,
    'rollout.max_response_tokens',
    rollout.max_response_tokens,
  )
