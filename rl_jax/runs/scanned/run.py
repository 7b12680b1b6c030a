"""One training run as pure functions: what `Trainer` and `Collector` do, on
arrays, for tasks that verify on the device (see `program`).
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import optax

from rl_jax import randomness
from rl_jax.config import ExperimentConfig, optimizer_of
from rl_jax.judging.verifiers import token_inputs
from rl_jax.learning.optimizers import make_optimizer
from rl_jax.learning.state import fresh_state
from rl_jax.learning.update import Batch
from rl_jax.method import Method
from rl_jax.models import transformer
from rl_jax.pieces.ops.masking import by_group
from rl_jax.rollouts import lagged as lagged_lib
from rl_jax.runs import policies as policies_lib
from rl_jax.runs import sources, stages
from rl_jax.runs.scanned import responses
from rl_jax.runs.scanned.evaluation import JittedEvaluation
from rl_jax.runs.scanned.prompts import Prompts
from rl_jax.tasks import base
from rl_jax.types import Array, GroupSummary, Metrics, TrainState, Trajectories


class Run(struct.PyTreeNode, kw_only=True):
  """The arrays of one run; several runs have a leading axis."""

  key_data: Array  # of the run's key
  method: Method
  learning_rate: Array  # in place of the configuration's
  params: Any  # trainable, at the start
  frozen: Any  # weights below adapters that are drawn from the run's seed
  groups_IKM: Array  # of the K optimizer steps of every iteration


class Carry(struct.PyTreeNode, kw_only=True):
  """The state that one iteration hands to the next."""

  state: TrainState
  selector: Any
  policies: dict[str, Any]  # named ones: see runs.policies
  lagged: lagged_lib.History
  iteration: Array


class Shared(struct.PyTreeNode, kw_only=True):
  """The inputs that all runs of a program share."""

  prompts: Prompts
  recorded: Trajectories | None  # rows of all prompts, if they are learned from
  held_out: Prompts | None  # those of the evaluations, if there are any
  frozen: Any  # further weights that no run trains


@dataclasses.dataclass(frozen=True)
class JittedRun:
  """The static parts of a run; its methods are pure functions of arrays."""

  config: ExperimentConfig
  model: transformer.ModelConfig
  tokenizer: Any
  functions: stages.Functions
  evaluation: JittedEvaluation | None

  @property
  def selector(self) -> Any:
    """The selector of prompts."""
    return sources.selector_of(self.config)

  def __call__(
    self, shared: Shared, run: Run, keep: Callable
  ) -> tuple[TrainState, Metrics, Any]:
    """(final state, metrics [I], what `keep` kept of the rollouts [I, ...]).

    Metrics of evaluations are [1 + I / every]: before, and after every so
    many iterations.
    """

    def step(carry, groups_KM):
      carry, traj, metrics = self.iteration(shared, run, carry, groups_KM)
      return carry, (metrics, keep(traj))

    carry, groups = self.start(shared.prompts, run), run.groups_IKM
    if self.evaluation is None:
      carry, (metrics, kept) = lax.scan(step, carry, groups)
      return carry.state, metrics, kept
    every = self.config.evaluation.every
    chunks = len(groups) // every
    padded = jnp.concatenate([groups, jnp.tile(groups[:1], (every, 1, 1))])

    def iterate(carry, groups_EKM):
      return lax.scan(step, carry, groups_EKM)

    def chunk(carry, chunk_index):
      """An evaluation and the iterations after it, none after the last.

      So each of the two is in the program, and compiled, once.
      """
      evaluated = self.evaluate(shared, run, carry)
      groups_EKM = lax.dynamic_slice_in_dim(padded, chunk_index * every, every)
      empty = jax.eval_shape(iterate, carry, groups_EKM)[1]
      carry, found = lax.cond(
        chunk_index < chunks,
        iterate,
        lambda carry, _: (carry, optax.tree.zeros_like(empty)),
        carry,
        groups_EKM,
      )
      return carry, (found, evaluated)

    carry, (found, evaluations) = lax.scan(chunk, carry, jnp.arange(chunks + 1))
    found = jax.tree.map(
      lambda x: x[:-1].reshape(chunks * every, *x.shape[2:]), found
    )
    if chunks * every < len(groups):
      carry, rest = lax.scan(step, carry, groups[chunks * every :])
      found = jax.tree.map(lambda *x: jnp.concatenate(x), found, rest)
    return carry.state, {**found[0], **evaluations}, found[1]

  def by_stages(self, shared: Shared, keep: Callable) -> Callable:
    """run -> what `__call__` returns, from the host with a program a stage.

    Methods share most of these programs: with jax's compilation cache
    (JAX_COMPILATION_CACHE_DIR) the next method compiles what it changes.
    """
    start, rollout, score, learn, evaluate = map(
      jax.jit,
      (self.start, self.rollout, self.score, self.learn, self.evaluate),
    )
    every = self.evaluation and self.config.evaluation.every

    def one_run(run):
      carry = start(shared.prompts, run)
      rows, kept = [], []
      evaluations = [evaluate(shared, run, carry)] if every else []
      for i, groups_KM in enumerate(run.groups_IKM):
        traj, selector = rollout(shared, run, carry)
        traj, scores = score(shared, run, carry, traj)
        carry, metrics = learn(shared, run, carry, traj, selector, groups_KM)
        rows.append({**scores, **metrics})
        kept.append(keep(traj))
        if every and not (i + 1) % every:
          evaluations.append(evaluate(shared, run, carry))
      stacked = [
        jax.tree.map(lambda *x: np.stack(x), *part) if part else {}
        for part in jax.device_get((rows, evaluations, kept))
      ]
      state = jax.device_get(carry.state)
      return state, {**stacked[0], **stacked[1]}, stacked[2]

    return one_run

  def start(self, prompts: Prompts, run: Run) -> Carry:
    """The carry before the first iteration."""
    rules = self.config.method.policies()
    state = fresh_state(
      run.method,
      make_optimizer(optimizer_of(self.config)),
      run.params,
      self.config.task.num_prompts('train'),
    )
    return Carry(
      state=state,
      selector=self.selector.init(len(prompts.id_N)),
      policies=policies_lib.initial(rules, run.params),
      lagged=lagged_lib.initial(
        self.config.rollout.staleness, state.params, state.step
      ),
      iteration=jnp.int32(0),
    )

  def iteration(
    self, shared: Shared, run: Run, carry: Carry, groups_KM: Array
  ) -> tuple[Carry, Trajectories, Metrics]:
    """Returns what the loop does between two boundaries, in the same order."""
    traj, selector = self.rollout(shared, run, carry)
    traj, scores = self.score(shared, run, carry, traj)
    carry, metrics = self.learn(shared, run, carry, traj, selector, groups_KM)
    return carry, traj, {**scores, **metrics}

  def rollout(
    self, shared: Shared, run: Run, carry: Carry
  ) -> tuple[Trajectories, Any]:
    """(rewarded rows, the selector's state): what `Collector.collect` does."""
    key = jax.random.wrap_key_data(run.key_data)
    sampling, version = self._sampler(carry)
    params = {**self._frozen(shared, run, carry), **sampling}
    rollout, task = self.config.rollout, self.config.task
    index_N, selector = self.selector.select(
      carry.selector,
      randomness.purpose_key(key, randomness.SELECTION),
      rollout.num_prompts,
    )
    serial = carry.iteration * rollout.num_prompts
    if shared.recorded is not None:
      rows = responses.recorded(shared.recorded, index_N, serial, version)
      return rows, selector
    drawn = shared.prompts.take(index_N)
    traj = drawn.start(
      rollout.group_size,
      rollout.max_response_tokens,
      serial,
      version,
    )
    static = (self.config, self.model, self.tokenizer, self.functions.sampling)
    traj, rewards = responses.sampled(*static, drawn, params, traj, key)
    reward_B = base.combine(rewards, task.reward_weights)
    described = token_inputs(task, self.tokenizer, traj)
    traj = traj.replace(
      rewards=rewards, reward_B=reward_B, extras={**traj.extras, **described}
    )

    def grouped(x_B):
      return by_group(x_B, rollout.group_size)

    length_B = traj.mask_BT.sum(axis=1).astype(jnp.int32)  # the policy's own
    mean_logp_B = traj.logp_behaviour_BT.sum(1) / jnp.maximum(length_B, 1)
    summary = GroupSummary(
      reward_NG=grouped(reward_B),
      right_NG=grouped(rewards[base.OUTCOME] > 0.5),
      length_NG=grouped(length_B),
      entropy_NG=grouped(-mean_logp_B),
    )
    return traj, self.selector.observe(selector, index_N, summary)

  def score(
    self, shared: Shared, run: Run, carry: Carry, traj: Trajectories
  ) -> tuple[Trajectories, Metrics]:
    """Returns what is known of the rows before the update; maybe nothing."""
    if self.functions.score is None:
      return traj, {}
    params = {**self._frozen(shared, run, carry), **carry.state.params}
    return self.functions.score(params, traj, run.method)

  def learn(
    self,
    shared: Shared,
    run: Run,
    carry: Carry,
    traj: Trajectories,
    selector: Any,
    groups_KM: Array,
  ) -> tuple[Carry, Metrics]:
    """Advantages and optimizer steps; then everything is due for the next."""
    update = functools.partial(
      self.functions.update_minibatch,
      self.functions.forward,
      optimizer=make_optimizer(optimizer_of(self.config), run.learning_rate),
    )
    if self.functions.forward.microbatches == 1:
      steps = functools.partial(stages.scanned_steps, update)
    else:  # the first of several steps reads the scores
      steps = functools.partial(stages.optimizer_steps, update)
    state, traj, metrics = stages.learn(
      self.functions.make_batch,
      steps,
      carry.state,
      Batch(
        frozen=self._frozen(shared, run, carry),
        method=run.method,
        traj=traj,
        key=jax.random.wrap_key_data(run.key_data),
      ),
      groups_KM,
    )
    if carry.lagged:
      version = self._sampler(carry)[1]
      metrics['rollout/steps_behind'] = carry.state.step - version
    iteration = carry.iteration + 1
    carry = Carry(
      state=state,
      lagged=lagged_lib.pushed(
        carry.lagged, carry.state.params, carry.state.step
      ),
      selector=selector,
      policies=policies_lib.renewed(
        self.config.method.policies(), carry.policies, state.params, iteration
      ),
      iteration=iteration,
    )
    return carry, {**metrics, **responses.metrics(traj)}

  def evaluate(self, shared: Shared, run: Run, carry: Carry) -> Metrics:
    """Metrics of the held-out prompts."""
    params = {**shared.frozen, **run.frozen, **carry.state.params}
    assert self.evaluation is not None and shared.held_out is not None
    return self.evaluation(shared.held_out, params)

  def _sampler(self, carry):
    """(weights that sample, their optimizer steps)."""
    return lagged_lib.sampler(
      carry.lagged, carry.state.params, carry.state.step
    )

  def _frozen(self, shared, run, carry):
    """Weights that no run trains, and the named policies."""
    rules = self.config.method.policies()
    policies = policies_lib.current(rules, carry.policies)
    frozen = {**shared.frozen, **run.frozen}
    return policies_lib.with_policies(frozen, policies)
