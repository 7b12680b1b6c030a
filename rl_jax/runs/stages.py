"""The four jitted stages of an iteration on one mesh.

  generate    prompts -> responses           weights of this iteration
  score       responses -> logp_old, ...     the same weights; left out where
                                             the update's own forward serves
  make_batch  rewards -> advantages          arrays only, no model
  update      one optimizer step a minibatch state is donated

Everything between them is plain Python; nothing here reads a device value.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any, Protocol

import jax
from jax import lax
import numpy as np

from rl_jax import randomness
from rl_jax.config import ExperimentConfig, optimizer_of, steps_of_rollout
from rl_jax.decoding import sampling
from rl_jax.decoding.engine import Engine, make_engine, on_own_mesh
from rl_jax.decoding.stop import make_stop
from rl_jax.learning import batch as batch_lib
from rl_jax.learning import model_checks, token_log
from rl_jax.learning import score as score_lib
from rl_jax.learning import update as update_lib
from rl_jax.learning.optimizers import make_optimizer
from rl_jax.learning.statistics import Forward
from rl_jax.learning.update import Batch
from rl_jax.method import Method
from rl_jax.models import packing, transformer
from rl_jax.runtime import compilation, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import Metrics, TrainState, Trajectories


class Score(Protocol):
  """The stage that scores sampled rows for an update, see learning.score."""

  def __call__(
    self, params: Any, traj: Trajectories, method: Method
  ) -> tuple[Trajectories, Metrics]:
    """The rows with log-probs and values, and metrics of them."""
    ...


class MakeBatch(Protocol):
  """From rewards to advantages, see learning.batch."""

  def __call__(
    self, method: Method, traj: Trajectories, method_state: dict[str, Any]
  ) -> tuple[Trajectories, dict[str, Any], Metrics]:
    """(rows, states of the pieces, metrics)."""
    ...


# Of learning.update, with its optimizer.
UpdateMinibatch = Callable[..., tuple[TrainState, Metrics]]


@dataclasses.dataclass(frozen=True)
class Functions:
  """The stages of one configuration as pure functions, not yet jitted."""

  sampling: sampling.SamplingConfig
  forward: Forward  # of an update
  score: Score | None  # None: nothing to score before the update
  make_batch: MakeBatch
  update_minibatch: UpdateMinibatch
  groups_per_minibatch: int  # rows, if by_row
  epochs: int
  by_row: bool = False  # minibatches are of rows, see UpdateConfig

  def minibatches(self, seed: int, iteration: int, num_groups: int):
    """Groups of the optimizer steps of one rollout, int32[K, M].

    With one minibatch a rollout the groups keep their order; otherwise every
    epoch is a permutation drawn from the counters of the iteration.
    """
    M = self.groups_per_minibatch
    orders = [
      minibatch_order(seed, iteration, epoch, num_groups)
      if M < num_groups
      else np.arange(num_groups)
      for epoch in range(self.epochs)
    ]
    return np.concatenate(orders).reshape(-1, M).astype(np.int32)


@dataclasses.dataclass(frozen=True)
class Stages:
  """Compiled functions of one configuration; built once by make_stages."""

  engine: Engine
  score: Score
  make_batch: jax.stages.Wrapped  # a MakeBatch
  update_minibatch: jax.stages.Wrapped  # an UpdateMinibatch
  functions: Functions
  seed: int
  pack: bool  # the update of responses that are mostly padding
  mesh: jax.sharding.Mesh  # of the update
  replicated: jax.sharding.Sharding


def make_functions(
  config: ExperimentConfig, model: transformer.ModelConfig, tokenizer: Any
) -> Functions:
  """Binds everything static; a method's floats stay arguments.

  Raises: ValueError for a method that reads what the model does not have.
  """
  rollout = config.rollout
  model_checks.check_router(config.method, model, config.mesh.sequence)
  model_checks.check_action_values(
    config.evaluation.transforms, config.method, model
  )
  minibatch = config.update.minibatch_prompts or rollout.num_prompts
  microbatch = config.update.microbatch_prompts or minibatch
  update = config.update
  by_row = update.minibatch_rows is not None
  rows = None if by_row else update.microbatch_rows
  parts = rollout.group_size // rows if rows else 1
  forward = Forward(
    model=model,
    temperature=rollout.temperature,
    microbatches=minibatch // microbatch * parts,
    group_rows=rows,
  )
  steps = steps_of_rollout(config)
  policy = score_lib.scores_first(config.method, steps)
  score = functools.partial(
    score_lib.score,
    dataclasses.replace(
      forward, microbatches=rollout.num_prompts // microbatch * parts
    ),
    policy=policy,
  )
  return Functions(
    sampling=sampling.SamplingConfig.ended_by(
      make_stop(tokenizer, rollout.stop),
      temperature=rollout.temperature,
      transforms=config.method.logits,
      weights=rollout.sampler_weights,
    ),
    score=score if policy or 'reference' in config.method.policies() else None,
    forward=dataclasses.replace(forward, microbatches=_row_pieces(update))
    if by_row
    else forward,
    make_batch=batch_lib.make_batch,
    update_minibatch=functools.partial(
      update_lib.update_minibatch,
      optimizer=make_optimizer(optimizer_of(config)),
      by_row=by_row,
    ),
    groups_per_minibatch=update.minibatch_rows or minibatch,
    by_row=by_row,
    epochs=config.update.epochs,
  )


def _row_pieces(update):
  """Microbatches of a minibatch of rows."""
  return update.minibatch_rows // (
    update.microbatch_rows or update.minibatch_rows
  )


def make_stages(
  config: ExperimentConfig,
  model: transformer.ModelConfig,
  tokenizer: Any,
  mesh: jax.sharding.Mesh,
  state: TrainState,
  draft_model: Any = None,
  sampling_mesh: jax.sharding.Mesh | None = None,
) -> Stages:
  """Jits the stages; shapes compile on first use.

  draft_model: of speculative decoding, as runs.draft_model loads it, or None.
  sampling_mesh: of other devices, which sample; None: those of mesh.
  The updated state keeps the shardings of `state`: one program for all steps.
  """
  rollout, replicated = config.rollout, mesh_lib.replicated(mesh)
  functions = make_functions(config, model, tokenizer)
  training = functools.partial(
    jax.jit,
    compiler_options=compilation.training_options(model.platform),
  )
  engine = make_engine(
    model,
    functions.sampling,
    rollout.engine_config,
    sampling_mesh or mesh,
    draft_model,
  )
  return Stages(
    engine=engine if sampling_mesh is None else on_own_mesh(engine),
    score=(
      training(functions.score, out_shardings=replicated)
      if functions.score
      else _nothing_to_score
    ),
    make_batch=jax.jit(functions.make_batch, out_shardings=replicated),
    update_minibatch=training(
      functools.partial(functions.update_minibatch, log_rows=num_rows(config)),
      donate_argnames='state',
      out_shardings=(mesh_lib.shardings_of(state), replicated),
      static_argnames=('forward', 'reuse_scores'),
    ),
    functions=functions,
    seed=config.seed,
    pack=config.update.pack and mesh_lib.spans(mesh) == 1,
    mesh=mesh,
    replicated=replicated,
  )


def update(
  stages: Stages,
  state: TrainState,
  batch: Batch,
  iteration: int,
  length_NG: np.ndarray,
  probe: Any | None = None,
) -> tuple[TrainState, Trajectories, Metrics, int]:
  """learn on one rollout; also the number of optimizer steps.

  length_NG: of the responses, on the host; it chooses one of two programs.
  probe: measures every step, see measures.influence.
  """
  # On the host: the order is a small function of (seed, iteration, epoch).
  traj, functions = batch.traj, stages.functions
  count = traj.num_prompts * (traj.group_size if functions.by_row else 1)
  groups_KM = functions.minibatches(stages.seed, iteration, count)
  groups = [processes.put(group_M, stages.replicated) for group_M in groups_KM]
  forward = functions.forward
  if stages.pack:
    if functions.by_row:
      length_NG = length_NG.reshape(-1, 1)
    elif forward.group_rows:
      length_NG = length_NG.reshape(-1, forward.group_rows)
    capacity = packing.capacity(length_NG, traj.response_BT.shape[1])
    forward = dataclasses.replace(forward, capacity=capacity)
  step = functools.partial(stages.update_minibatch, forward=forward)
  if probe is not None:
    step = probe.around(step, state, batch)
  state, traj, metrics = learn(
    stages.make_batch,
    functools.partial(optimizer_steps, step),
    state,
    batch,
    groups,
  )
  return state, traj, metrics, len(groups)


def learn(
  make_batch: Any, steps: Any, state: TrainState, batch: Batch, groups: Any
) -> tuple[TrainState, Trajectories, Metrics]:
  """Advantages and optimizer steps of one rollout, in every way of running.

  make_batch: of learning.batch, jitted or not. steps: optimizer_steps or
  scanned_steps of an update_minibatch.
  """
  traj, method_state, made = make_batch(
    batch.method, batch.traj, state.method_state
  )
  state = state.replace(method_state=method_state)
  state, metrics = steps(state, batch.replace(traj=traj), groups)
  return state, traj, {**made, **metrics}


def optimizer_steps(
  update_minibatch: Any, state: TrainState, batch: Batch, groups: Any
) -> tuple[TrainState, Metrics]:
  """One step for each int32[M] of groups, and the means of their metrics.

  The first of several steps reads the scores, the others do not.
  """
  per_step = []
  for group_M in groups:
    state, metrics = update_minibatch(
      state=state, batch=batch, group_M=group_M, reuse_scores=not per_step
    )
    per_step.append(metrics)
  return state, _mean_metrics(per_step)


def scanned_steps(
  update_minibatch: Any, state: TrainState, batch: Batch, group_KM: Any
) -> tuple[TrainState, Metrics]:
  """The same with one body for all steps, which is compiled once."""
  state, metrics = lax.scan(
    lambda state, group_M: update_minibatch(
      state=state, batch=batch, group_M=group_M, reuse_scores=False
    ),
    state,
    group_KM,
  )
  return state, jax.tree.map(lambda x: x.mean(axis=0), metrics)


def minibatch_order(
  seed: int, iteration: int, epoch: int, num_groups: int
) -> np.ndarray:
  """The permutation of groups of one epoch, the same on every host."""
  # NumPy takes no negative numbers, which a seed may be.
  counters = [randomness.MINIBATCHES, seed % 2**64, iteration, epoch]
  return np.random.default_rng(counters).permutation(num_groups)


def _nothing_to_score(params, traj, method):
  """The score stage of methods that read nothing before their one update."""
  del params, method
  return traj, {}


_mean_metrics = jax.jit(token_log.mean_metrics)


MAX_TOKENS = 4096  # per iteration with their own values; at least one row


def num_rows(config: ExperimentConfig) -> int:
  """Rows of a batch whose tokens are logged one by one."""
  rollout, prompts = config.rollout, max(0, config.guards.log_rollouts)
  rows = min(prompts, rollout.num_prompts) * rollout.group_size
  return min(rows, max(1, MAX_TOKENS // rollout.max_response_tokens))
