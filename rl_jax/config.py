"""The configuration of one experiment: a tree of frozen dataclasses."""

import dataclasses
import math
from typing import Any

from rl_jax import method as method_lib
from rl_jax.checks import checked, ranged
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.verification.pool import VerifierConfig, check_limits


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class EvaluationConfig:
  """Greedy accuracy on a split every so many iterations (0: never)."""

  every: int = ranged(0, 0)
  split: str = 'validation'
  num_prompts: int = ranged(128, 1)
  num_samples: int = ranged(0, 0)  # further samples a prompt, for pass@k
  batch_prompts: int = ranged(128, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuardConfig:
  """Limits that stop a run before it wastes its budget."""

  max_skipped_in_a_row: int = 3  # updates with a non-finite gradient
  max_logp_gap: float | None = 1.0  # nats, sampler against trainer; None: off
  log_rollouts: int = 4  # prompts an iteration in rollouts.jsonl


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ExperimentConfig:
  """Everything that decides the numbers of a run."""

  seed: int = 0
  iterations: int = ranged(100, 0)
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


def optimizer_of(config: ExperimentConfig) -> OptimizerConfig:
  """The optimizer of a run: by default it ends with the last iteration.

  total_steps = iterations * epochs * num_prompts / minibatch_prompts
  """
  optimizer = config.optimizer
  if optimizer.schedule == 'constant' or optimizer.total_steps is not None:
    return optimizer
  rollout, update = config.rollout, config.update
  minibatch = update.minibatch_prompts or rollout.num_prompts
  steps = update.epochs * (rollout.num_prompts // minibatch)
  return dataclasses.replace(optimizer, total_steps=config.iterations * steps)


def validate(config: ExperimentConfig) -> None:
  """Raises ValueError before anything is compiled if parts do not fit."""
  rollout, update, mesh = config.rollout, config.update, config.mesh
  weights = getattr(config.task, 'reward_weights', None)
  if weights is not None and not (
    weights and all(map(math.isfinite, weights.values()))
  ):
    raise ValueError(
      f'task.reward_weights = {weights!r}: expected finite weights by name'
    )
  method_lib.validate(
    config.method,
    group_size=rollout.group_size,
    has_value_head=config.model.value_head,
  )
  if hasattr(config.method.rollout, 'check_task'):
    config.method.rollout.check_task(config.task)
  if config.verifier.on_device:
    _check_device_verifier(config)
  else:
    check_limits(
      config.task, config.verifier.num_workers, config.verifier.timeout_seconds
    )
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


def _check_device_verifier(config: ExperimentConfig) -> None:
  """Raises ValueError if rewards cannot come from tokens alone."""
  name = type(config.task).__name__
  if not hasattr(config.task, 'reward_device'):
    raise ValueError(
      f'verifier.on_device = True, but {name} has no device verifier '
      '(reward_device)'
    )
  for field, value in (
    ('verifier.num_workers', config.verifier.num_workers),
    ('rollout.stop', config.rollout.stop),
  ):
    if value:
      raise ValueError(
        f'{field} = {value!r} with verifier.on_device = True: device verifiers '
        'have no workers, and support only the end token'
      )
