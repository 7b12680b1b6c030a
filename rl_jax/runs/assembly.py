"""From a configuration to the parts of a run, checked before any compile."""

import dataclasses
import functools
import os
from typing import Any

from absl import logging
import jax

from rl_jax import config as config_lib
from rl_jax.config import ExperimentConfig, optimizer_of
from rl_jax.learning.optimizers import make_optimizer
from rl_jax.learning.state import sharded_state
from rl_jax.method import Method, idle_pieces
from rl_jax.models import platform, transformer
from rl_jax.pieces.selection import ShuffledPass
from rl_jax.rollouts.collect import Collector, RolloutConfig
from rl_jax.rollouts.engine import make_engine
from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.verifiers import TextVerifier, TokenVerifier
from rl_jax.runs import directory
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import Evaluator
from rl_jax.runs.policies import Policies
from rl_jax.runs.policy import Policy
from rl_jax.runs.stages import Stages, make_stages
from rl_jax.runtime import host_memory, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import TrainState
from rl_jax.verification.journal import FILE as JOURNAL_FILE
from rl_jax.verification.journal import JournaledPool
from rl_jax.verification.pool import VerifierPool


@dataclasses.dataclass(frozen=True)
class Parts:
  """What a run in the loop is made of; state and policies are at step 0."""

  mesh: jax.sharding.Mesh
  policy: Policy
  method: Method
  state: TrainState
  stages: Stages
  policies: Policies
  key: jax.Array
  verifier: TextVerifier | TokenVerifier
  collector: Collector
  evaluator: Evaluator | None


def assemble(
  config: ExperimentConfig, workdir: str, mesh: jax.sharding.Mesh
) -> Parts:
  """All parts of a run on a mesh that is in force."""
  policy = policy_lib.load(config.model, config.task, config.seed, mesh)
  rollout = config.rollout
  check_lengths(rollout, policy.model)
  for line in idle_pieces(
    config.method,
    max_response_tokens=rollout.max_response_tokens,
    vocab_size=policy.model.vocab_size,
  ):
    logging.warning('%s', line)
  prompts = _prompts(config, policy, 'train')
  if hasattr(config.method.rollout, 'check_prompts'):
    config.method.rollout.check_prompts(prompts)
  state = initial_state(config, policy, mesh)
  stages = make_stages(config, policy.model, policy.tokenizer, mesh, state)
  key = run_key(config.seed, mesh)
  verifier = make_verifier(config, workdir, policy.tokenizer, mesh)
  evaluator = None
  if config.evaluation.every:
    evaluator = make_evaluator(config, policy, verifier, mesh)
  return Parts(
    mesh=mesh,
    policy=policy,
    method=method_on_mesh(config.method, mesh),
    state=state,
    stages=stages,
    policies=Policies(
      config.method.policies(), policy.frozen, policy.trainable
    ),
    key=key,
    verifier=verifier,
    collector=Collector(
      rollout,
      engine=stages.engine,
      score=stages.score,
      prompts=prompts,
      selector=HostSelector(selector_of(config), len(prompts), key),
      verifier=verifier,
      key=key,
    ),
    evaluator=evaluator,
  )


def _prompts(config, policy, split):
  rollout = config.rollout
  return PromptSet(
    config.task,
    split,
    policy.tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )


def initial_state(
  config: ExperimentConfig, policy: Policy, mesh: jax.sharding.Mesh
) -> TrainState:
  """The state of a run at step 0, on the mesh."""
  return sharded_state(
    config.method,
    make_optimizer(optimizer_of(config)),
    policy.trainable,
    config.task.num_prompts('train'),
    mesh,
  )


def selector_of(config: ExperimentConfig) -> Any:
  """Which prompts come next: the method's selector, or a shuffled pass."""
  return config.method.selector or ShuffledPass()


def check_lengths(rollout: RolloutConfig, model: transformer.ModelConfig):
  """Raises ValueError if a row could outgrow the positions of the model."""
  longest = rollout.max_prompt_tokens + rollout.max_response_tokens
  if longest > model.max_positions:
    raise ValueError(
      f'rollout.max_prompt_tokens + rollout.max_response_tokens = {longest}, '
      f'but the model has {model.max_positions} positions'
    )


def run_key(seed: int, mesh: jax.sharding.Mesh) -> jax.Array:
  """The key of a run, replicated: all its randomness derives from it."""
  return processes.put(jax.random.key(seed), mesh_lib.replicated(mesh))


def method_on_mesh(method: Method, mesh: jax.sharding.Mesh) -> Method:
  """The method with float32 leaves, replicated over the mesh."""
  return processes.put(method.as_arrays(), mesh_lib.replicated(mesh))


def with_compute_dtype(config: ExperimentConfig) -> ExperimentConfig:
  """The configuration with the dtype that 'auto' means on this platform.

  It is written to experiment.json, so that a run that continues on another
  kind of machine has the same results or is an error.
  """
  dtype, _ = platform.choose_dtype(
    config.model.compute_dtype, platform.Platform.of(jax.devices()[0])
  )
  return dataclasses.replace(
    config, model=dataclasses.replace(config.model, compute_dtype=dtype)
  )


def prepare(config: ExperimentConfig, workdir: str | None) -> jax.sharding.Mesh:
  """All checks that need no weights; returns the mesh."""
  config_lib.validate(config)
  host_memory.give_back_after_compilations()
  mesh = mesh_lib.make_mesh(config.mesh)
  if workdir is not None:
    # Process 0 reads: other hosts may have an older state of a shared disk.
    processes.on_main(lambda: directory.check(config, workdir))
  return mesh


def make_verifier(
  config: ExperimentConfig,
  workdir: str,
  tokenizer: Any,
  mesh: jax.sharding.Mesh,
) -> TextVerifier | TokenVerifier:
  """Judges responses; only outcomes of workers may differ between runs."""
  settings = config.verifier
  if settings.on_device:
    return TokenVerifier(config.task, tokenizer, mesh)
  pool = VerifierPool(
    config.task,
    num_workers=settings.num_workers,
    timeout_seconds=settings.timeout_seconds,
    memory_limit_bytes=settings.memory_limit_bytes,
    on_timeout=settings.on_timeout,
  )
  name = JOURNAL_FILE
  if processes.count() > 1:  # each verifies rows of its own
    name = f'process_{processes.index()}_{name}'
  path = os.path.join(workdir, name)
  return TextVerifier(
    JournaledPool(pool, path if settings.num_workers else None)
  )


def make_evaluator(
  config: ExperimentConfig,
  policy: Policy,
  verifier: TextVerifier | TokenVerifier,
  mesh: jax.sharding.Mesh,
) -> Evaluator:
  """The evaluation that `config.evaluation` describes."""
  rollout, evaluation = config.rollout, config.evaluation
  prompts = _prompts(config, policy, evaluation.split)
  return Evaluator(
    functools.partial(
      make_engine,
      policy.model,
      max_response_tokens=rollout.max_response_tokens,
      mesh=mesh,
    ),
    prompts,
    verifier,
    evaluation,
    temperature=rollout.temperature,
    stop=rollout.stop,
  )
