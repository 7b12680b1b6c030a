"""From a configuration to the parts of a run, checked before any compile."""

import dataclasses
import os
from typing import Any

from absl import logging
from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import (
  abstract_run,
  accelerators,
  checkpoint,
  host_memory,
  processes,
  randomness,
  serialization,
  sharding,
)
from rl_jax import config as config_lib
from rl_jax.checkpoint_files import committed_steps
from rl_jax.config import ExperimentConfig, ModelSource, RolloutConfig
from rl_jax.evaluate import Evaluator
from rl_jax.method import Method
from rl_jax.models import model_dir, transformer
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.optimizers import init_sharded, make_optimizer
from rl_jax.prompts import PromptSet
from rl_jax.types import TrainState
from rl_jax.verification import VerifierPool
from rl_jax.verification_journal import FILE as JOURNAL_FILE
from rl_jax.verification_journal import JournaledPool

CONFIG_FILE = 'experiment.json'  # HF directories have a config.json
# Where a run is continued with other values: its length, its machine, its logs.
FREE = (
  'iterations:',
  'mesh.',
  'checkpoint.',
  'model.remat:',
  'model.attention:',
  'rollout.slots:',
  'update.microbatch_prompts:',
  'evaluation.batch_prompts:',
  'verifier.num_workers:',
  'verifier.memory_limit_bytes:',
  'guards.log_rollouts:',
)


@dataclasses.dataclass(frozen=True)
class Policy:
  """A model on a mesh: trainable and frozen parts of its parameters."""

  model: transformer.ModelConfig
  tokenizer: Any
  trainable: Any
  frozen: Any

  @property
  def params(self) -> Any:
    """The whole tree that model functions take."""
    return {**self.frozen, **self.trainable}


def load_policy(
  source: ModelSource, task: Any, seed: int, mesh: jax.sharding.Mesh
) -> Policy:
  """Loads or initialises the policy, born sharded.

  With LoRA only the adapters and the value head are trainable.
  """
  changes = dict(
    remat=source.remat,
    value_head=source.value_head,
    lora_rank=source.lora_rank,
  )
  computing = dict(
    compute_dtype=source.compute_dtype,
    attention=source.attention,
    spans=sharding.spans(mesh),
  )
  key = randomness.purpose_key(jax.random.key(seed), randomness.INIT)
  if source.path is not None:
    model, params, tokenizer = load_checkpoint(source.path, mesh)
    model = dataclasses.replace(model, **changes)
    model = accelerators.resolve(model, **computing)
    # A head or adapters that the source does not have start fresh.
    fresh = sharding.init_missing(model, params, key, mesh)
    wanted = transformer.specs(model)
    params = {name: {**params, **fresh}[name] for name in wanted}
  else:
    tokenizer = task_tokenizer(task)
    if source.config is None:
      raise ValueError('model.path or model.config must be given')
    model = dataclasses.replace(
      source.config, vocab_size=tokenizer.vocab_size, **changes
    )
    model = accelerators.resolve(model, **computing)
    params = sharding.init_params(model, key, mesh)
  trainable, frozen = abstract_run.split_trainable(model, params)
  return Policy(
    model=model, tokenizer=tokenizer, trainable=trainable, frozen=frozen
  )


def load_checkpoint(
  source: str, mesh: jax.sharding.Mesh, step: int | None = None
) -> tuple[transformer.ModelConfig, Any, Any]:
  """(model, params, tokenizer) of a work directory of training or a model.

  Of a work directory: the newest valid checkpoint, or that of iteration step.
  """
  path = os.path.join(source, CONFIG_FILE)
  if not os.path.exists(path):
    model, params, tokenizer = model_dir.load_any(source, mesh)
    model = accelerators.resolve(model, spans=sharding.spans(mesh))
    return model, params, tokenizer
  with open(path) as file:
    config = serialization.from_json(file.read())
  policy = load_policy(config.model, config.task, config.seed, mesh)
  saver = checkpoint.Checkpointer(os.path.join(source, 'checkpoints'))
  abstract = checkpoint.abstract_tree({'state': {'params': policy.trainable}})
  restored = saver.restore(abstract, step, partial=True)
  saver.close()
  if restored is None:
    raise ValueError(f'{source} holds no checkpoint yet')
  params = {**policy.frozen, **restored.tree['state']['params']}
  return policy.model, params, policy.tokenizer


def task_tokenizer(task: Any) -> Any:
  """The character tokenizer of a procedural task."""
  alphabet = getattr(task, 'alphabet', None)
  if alphabet is None:
    raise ValueError(
      f'{type(task).__name__} has no alphabet of its own: set model.path to '
      'a model with a tokenizer'
    )
  return CharTokenizer(alphabet)


def reference(config: ExperimentConfig, policy: Policy) -> Any | None:
  """The initial policy, if a piece compares with it.

  Copies: the training state is donated, and a buffer may be donated once.
  """
  if 'logp_ref' not in config.method.needs():
    return None
  return {**policy.frozen, **jax.tree.map(jnp.copy, policy.trainable)}


def initial_state(
  config: ExperimentConfig,
  policy: Policy,
  num_prompts: int,
  mesh: jax.sharding.Mesh,
) -> TrainState:
  """Step 0: optimizer moments have the shardings of their parameters."""
  optimizer = make_optimizer(config.optimizer)
  small = processes.put(
    {
      'step': np.int32(0),
      'skipped': np.int32(0),
      'method_state': config.method.init_state(num_prompts),
    },
    sharding.replicated(mesh),
  )
  return TrainState(
    params=policy.trainable,
    opt_state=init_sharded(optimizer, policy.trainable, mesh),
    **small,
  )


def check_lengths(rollout: RolloutConfig, model: transformer.ModelConfig):
  """Raises ValueError if a row could outgrow the positions of the model."""
  longest = rollout.max_prompt_tokens + rollout.max_response_tokens
  if longest > model.max_positions:
    raise ValueError(
      f'rollout.max_prompt_tokens + rollout.max_response_tokens = {longest}, '
      f'but the model has {model.max_positions} positions'
    )


def check_workdir(config: ExperimentConfig, workdir: str) -> None:
  """Raises ValueError if the directory holds the run of another configuration.

  Fields of FREE may change: the rest of the run is the same within tier E1, and
  checkpoints restore on any mesh. What has changed is logged.
  """
  path = os.path.join(workdir, CONFIG_FILE)
  if not os.path.exists(path):
    if committed_steps(epath.Path(workdir) / 'checkpoints'):
      raise ValueError(
        f'{workdir} has checkpoints but no {CONFIG_FILE}: nobody knows what '
        'they continue. Use another --workdir, or remove them.'
      )
    return
  with open(path) as f:
    saved = serialization.from_json(f.read())
  # Through JSON once, so that only what is written is compared.
  given = serialization.from_json(serialization.to_json(config))
  changes = serialization.difference(saved, given)
  lines = [line for line in changes if not line.startswith(FREE)]
  if lines:
    raise ValueError(
      f'{path} differs from the given configuration (saved -> given):\n  '
      + '\n  '.join(lines)
      + '\nUse another --workdir, or give the saved values.'
    )
  logging.info('continuing the run in %s', workdir)
  for line in changes:
    logging.warning('continuing with another %s', line)


def iterations_done(workdir: str) -> int:
  """The newest committed checkpoint of a work directory, 0 without one."""
  steps = committed_steps(epath.Path(workdir) / 'checkpoints')
  return steps[-1] if steps else 0


def write_config(config: ExperimentConfig, workdir: str) -> None:
  """Writes experiment.json if there is none.

  Called when everything else has been checked, so that a mistake that was
  refused does not stand in the way of the corrected command. Of several
  processes process 0 writes it.
  """
  processes.on_main(lambda: _write_config(config, workdir))


def _write_config(config, workdir):
  os.makedirs(workdir, exist_ok=True)
  path = os.path.join(workdir, CONFIG_FILE)
  if os.path.exists(path):
    return
  temporary = path + '.tmp'
  with open(temporary, 'w') as f:
    f.write(serialization.to_json(config))
  os.replace(temporary, path)


def run_key(seed: int, mesh: jax.sharding.Mesh) -> jax.Array:
  """The key of a run, replicated: all its randomness derives from it."""
  return processes.put(jax.random.key(seed), sharding.replicated(mesh))


def method_on_mesh(method: Method, mesh: jax.sharding.Mesh) -> Method:
  """The method with float32 leaves, replicated over the mesh."""
  return processes.put(method.as_arrays(), sharding.replicated(mesh))


def with_compute_dtype(config: ExperimentConfig) -> ExperimentConfig:
  """The configuration with the dtype that 'auto' means on this platform.

  It is what is written down: a run that moves to another kind of machine keeps
  its numbers, or is refused.
  """
  dtype, _ = accelerators.choose_dtype(
    config.model.compute_dtype, accelerators.Platform.of(jax.devices()[0])
  )
  return dataclasses.replace(
    config, model=dataclasses.replace(config.model, compute_dtype=dtype)
  )


def prepare(config: ExperimentConfig, workdir: str | None) -> jax.sharding.Mesh:
  """All checks that need no weights; returns the mesh."""
  config_lib.validate(config)
  host_memory.give_back_after_compilations()
  mesh = sharding.make_mesh(config.mesh)
  if workdir is not None:
    # One process looks: what the others see of a shared disk may be older.
    processes.on_main(lambda: check_workdir(config, workdir))
  return mesh


def make_verifier(config: ExperimentConfig, workdir: str) -> JournaledPool:
  """The reward workers; only their outcomes may differ from time to time."""
  settings = config.verifier
  pool = VerifierPool(
    config.task,
    num_workers=settings.num_workers,
    timeout_seconds=settings.timeout_seconds,
    memory_limit_bytes=settings.memory_limit_bytes,
  )
  name = JOURNAL_FILE
  if processes.count() > 1:  # each verifies rows of its own
    name = f'process_{processes.index()}_{name}'
  path = os.path.join(workdir, name)
  return JournaledPool(pool, path if settings.num_workers else None)


def make_evaluator(
  config: ExperimentConfig,
  policy: Policy,
  verifier: VerifierPool | JournaledPool,
  mesh: jax.sharding.Mesh,
) -> Evaluator:
  """The evaluation that `config.evaluation` describes."""
  rollout, evaluation = config.rollout, config.evaluation
  prompts = PromptSet(
    config.task,
    evaluation.split,
    policy.tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )
  return Evaluator(
    model=policy.model,
    tokenizer=policy.tokenizer,
    prompts=prompts,
    verifier=verifier,
    mesh=mesh,
    max_new_tokens=rollout.max_response_tokens,
    num_prompts=evaluation.num_prompts,
    num_samples=evaluation.num_samples,
    temperature=rollout.temperature,
    stop=rollout.stop,
    batch_prompts=evaluation.batch_prompts,
  )
