"""Whole training runs as one program, for tasks that verify on the device.

The four stages of an iteration are one function, scanned over iterations. Runs
that differ in their seeds and in the float fields of their method alone go
through one program side by side:

  jit(shard_map over devices(map or vmap over runs(scan over iterations)))

Draws are functions of the same counters as in the loop, so a run samples what
`loop.Trainer` samples from the same configuration (tier E2). Nothing is read
before the end: no checkpoints, and guards judge the finished run.
"""

from collections.abc import Callable, Sequence
import dataclasses
import time
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np

from rl_jax import (
  batch,
  entropy_change,
  randomness,
  serialization,
  setup,
  sharding,
  stages,
)
from rl_jax import config as config_lib
from rl_jax.config import ExperimentConfig
from rl_jax.masking import by_group
from rl_jax.method import Method
from rl_jax.optimizers import make_optimizer
from rl_jax.prompts import PromptSet
from rl_jax.rollouts.generate import start_trajectories
from rl_jax.selection import ShuffledPass
from rl_jax.tasks import base
from rl_jax.types import Array, Metrics, TrainState, Trajectories

MAX_PROMPTS = 1_000_000  # all prompts lie on the device, encoded


@struct.dataclass(kw_only=True)
class Prompts:
  """Every prompt of the split, and what its verifier needs to know."""

  prompt_NP: Array
  mask_NP: Array
  id_N: Array
  answer_NA: Array
  answer_length_N: Array


@struct.dataclass(kw_only=True)
class Run:
  """What one run has of its own; of several runs with a leading axis."""

  key_data: Array  # of the run's key
  method: Method
  params: Any  # trainable, at the start
  groups_IKM: Array  # of the K optimizer steps of every iteration


@struct.dataclass(kw_only=True)
class Carry:
  """What one iteration hands to the next."""

  state: TrainState
  selector: Any
  lagged: Any | None
  iteration: Array


def refusal(config: ExperimentConfig) -> str | None:
  """Why the configuration must go through the loop, or None."""
  method, task = config.method, config.task
  name = type(task).__name__
  num_prompts = task.num_prompts('train')
  reasons = {
    f'{name} has no device verifier (score_device)': not hasattr(
      task, 'score_device'
    ),
    'verifier.num_workers > 0: rewards come from worker processes': (
      config.verifier.num_workers > 0
    ),
    'rollout.stop: device verifiers know the end token alone': bool(
      config.rollout.stop
    ),
    'method.group_filter: dynamic sampling draws rounds until the host has '
    'counted enough groups': method.group_filter is not None,
    f'method.rollout: {type(method.rollout).__name__} reads responses on the '
    'host': method.rollout is not None,
    'evaluation.every > 0: evaluations read responses on the host; set it to '
    '0': config.evaluation.every > 0,
    'mesh: one run stays on one device; leave all its axes at 1': (
      config.mesh != sharding.MeshConfig()
    ),
    f'{name} has {num_prompts} prompts, and {MAX_PROMPTS} fit on the device': (
      num_prompts > MAX_PROMPTS
    ),
  }
  for reason, applies in reasons.items():
    if applies:
      return f'this run cannot be jitted as a whole: {reason}'
  return None


def program_key(config: ExperimentConfig) -> tuple[Any, str]:
  """Equal for configurations that one program runs side by side.

  They differ in the seed and in float fields of the method; those of `logits`
  are part of the sampler and must be the same.
  """
  method = config.method
  rest = dataclasses.replace(
    config,
    seed=0,
    method=Method(logits=method.logits, selector=method.selector),
  )
  return jax.tree.structure(method), serialization.to_json(rest)


class WholeRuns:
  """Compiled on `run`; runs are split over as many devices as divide them.

  vectorize: all runs of a device in step (vmap), or one after the other
  (lax.map). None: vmap, except on CPUs, where it gains nothing.
  Raises ValueError for what must go through the loop, or does not go together.
  """

  def __init__(
    self, configs: Sequence[ExperimentConfig], vectorize: bool | None = None
  ):
    self.configs, self.config = list(configs), configs[0]
    for config in configs:
      config_lib.validate(config)
      if why := refusal(config):
        raise ValueError(why)
      if program_key(config) != program_key(self.config):
        raise ValueError(
          'runs of one program differ in seed and method floats alone:\n  '
          + '\n  '.join(serialization.difference(self.config, config))
        )
    if vectorize is None:
      vectorize = jax.default_backend() != 'cpu'
    self._vectorize = vectorize
    devices = jax.devices()[: np.gcd(len(configs), jax.device_count())]
    self._mesh = jax.sharding.Mesh(np.asarray(devices), ('runs',))
    one = sharding.make_mesh(self.config.mesh, devices[:1])
    policies = [
      setup.load_policy(c.model, c.task, c.seed, one) for c in self.configs
    ]
    self._policy = policy = policies[0]
    setup.check_lengths(self.config.rollout, policy.model)
    self._prompts = _prompts(self.config, policy.tokenizer)
    self._functions = stages.make_functions(
      self.config, policy.model, policy.tokenizer
    )
    runs = [
      self._run_of(c, p) for c, p in zip(self.configs, policies, strict=True)
    ]
    self._runs = jax.tree.map(lambda *x: np.stack(x), *jax.device_get(runs))

  def _run_of(self, config, policy):
    groups = [
      self._functions.minibatches(config.seed, i, config.rollout.num_prompts)
      for i in range(config.iterations)
    ]
    return Run(
      key_data=jax.random.key_data(jax.random.key(config.seed)),
      method=config.method.as_arrays(),
      params=policy.trainable,
      groups_IKM=np.stack(groups),
    )

  def run(
    self, keep: Callable[[Trajectories], Any] = lambda traj: None
  ) -> tuple[dict[str, np.ndarray], TrainState, Any]:
    """(metrics [S, I] by name, final states [S, ...], what `keep` kept).

    keep: arrays of every iteration's rollout to return with axes [S, I, ...].
    """

    def all_runs(shared, runs):
      one = lambda run: self._one_run(shared, run, keep)
      return jax.vmap(one)(runs) if self._vectorize else lax.map(one, runs)

    of_runs, whole = PartitionSpec('runs'), PartitionSpec()
    program = jax.shard_map(
      all_runs,
      mesh=self._mesh,
      in_specs=(whole, of_runs),
      out_specs=of_runs,
      check_vma=False,
    )
    shared = (self._prompts, jax.device_get(self._policy.frozen))
    started = time.perf_counter()
    with jax.set_mesh(self._mesh):
      shared = jax.device_put(shared, NamedSharding(self._mesh, whole))
      runs = jax.device_put(self._runs, NamedSharding(self._mesh, of_runs))
      state, metrics, kept = jax.jit(program)(shared, runs)
      metrics = jax.device_get(metrics)
    seconds = (time.perf_counter() - started) / metrics['reward/mean'].size
    return self._finished(metrics, seconds), state, jax.device_get(kept)

  def _one_run(self, shared, run, keep):
    """The whole run on one device."""
    lagged = self.config.method.lagged_period() is not None
    selector = self.config.method.selector or ShuffledPass()
    # States of pieces are tables over the task's own ids, skipped ones too.
    num_ids = self.config.task.num_prompts('train')
    optimizer, zero = make_optimizer(self.config.optimizer), jnp.int32(0)
    carry = Carry(
      state=TrainState(
        step=zero,
        params=run.params,
        opt_state=optimizer.init(run.params),
        method_state=self.config.method.init_state(num_ids),
        skipped=zero,
      ),
      selector=selector.init(len(shared[0].id_N)),
      lagged=run.params if lagged else None,
      iteration=zero,
    )

    def step(carry, groups_KM):
      carry, traj, metrics = self._iteration(shared, run, carry, groups_KM)
      return carry, (metrics, keep(traj))

    carry, (metrics, kept) = lax.scan(step, carry, run.groups_IKM)
    return carry.state, metrics, kept

  def _iteration(
    self, shared: Any, run: Run, carry: Carry, groups_KM: Array
  ) -> tuple[Carry, Trajectories, Metrics]:
    """What the loop does between two boundaries, in the same order."""
    key = jax.random.wrap_key_data(run.key_data)
    state, frozen, functions = carry.state, shared[1], self._functions
    first = frozen  # the reference has no lagged copy of its own
    if carry.lagged is not None:
      frozen = {**frozen, 'lagged': {**frozen, **carry.lagged}}
    params = {**frozen, **state.params}
    traj, observed = self._rollout(shared[0], params, key, carry)
    scores = {}
    if functions.score is not None:
      reference = None
      if 'logp_ref' in self.config.method.needs():
        reference = {**first, **run.params}
      traj, scores = functions.score(params, reference, traj, run.method)
    traj, method_state, made = batch.make_batch(
      run.method, traj, state.method_state
    )
    state, update = stages.optimizer_steps(
      functions.update_minibatch,
      state.replace(method_state=method_state),
      frozen,
      run.method,
      traj,
      key,
      list(groups_KM),
    )
    iteration, lagged = carry.iteration + 1, carry.lagged
    if lagged is not None:
      due = iteration % self.config.method.lagged_period() == 0
      lagged = jax.tree.map(
        lambda new, old: jnp.where(due, new, old), state.params, lagged
      )
    carry = Carry(
      state=state, selector=observed, lagged=lagged, iteration=iteration
    )
    tokens = {'rollout/tokens': traj.length_B.sum()}
    return carry, traj, {**scores, **made, **update, **tokens}

  def _rollout(self, prompts, params, key, carry):
    """(rewarded rows, the selector's state): `Collector.collect` on arrays."""
    rollout, task = self.config.rollout, self.config.task
    selector = self.config.method.selector or ShuffledPass()
    selection_key = randomness.purpose_key(key, randomness.SELECTION)
    index_N, selected = selector.select(
      carry.selector, selection_key, rollout.num_prompts
    )
    drawn = jax.tree.map(lambda x: x[index_N], prompts)
    traj = start_trajectories(
      drawn.prompt_NP,
      drawn.mask_NP,
      drawn.id_N,
      group_size=rollout.group_size,
      max_response_tokens=rollout.max_response_tokens,
      first_serial=carry.iteration * rollout.num_prompts,
      policy_version=carry.state.step,
    )
    traj = self._functions.generate(params, traj=traj, key=key)
    rewards = task.score_device(
      traj.response_BT,
      traj.length_B,
      jnp.repeat(drawn.answer_NA, rollout.group_size, axis=0),
      jnp.repeat(drawn.answer_length_N, rollout.group_size),
      self._policy.tokenizer,
    )
    reward_B = base.combine(rewards, task.reward_weights)
    observed = selector.observe(
      selected, index_N, by_group(reward_B, rollout.group_size)
    )
    return traj.replace(rewards=rewards, reward_B=reward_B), observed

  def _finished(self, metrics, seconds):
    """Adds what the loop computes on the host."""
    ones = np.ones_like(metrics['reward/mean'])
    tokens = np.cumsum(metrics.pop('rollout/tokens'), axis=1)
    rate = self.config.optimizer.learning_rate
    return {
      **metrics,
      **entropy_change.of_course(metrics, rate),
      'rollout/rounds': ones,
      'rollout/tokens_total': tokens,
      'rollout/reward_errors': 0 * ones,
      'time/iteration_seconds': seconds * ones,
    }


def _prompts(config: ExperimentConfig, tokenizer: Any) -> Prompts:
  """The whole training split, encoded."""
  rollout = config.rollout
  prompts = PromptSet(
    config.task,
    'train',
    tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )
  examples, prompt, mask, ids = prompts.batch(range(len(prompts)))
  answer, length = config.task.device_answers(examples, tokenizer)
  return Prompts(
    prompt_NP=prompt,
    mask_NP=mask,
    id_N=ids,
    answer_NA=answer,
    answer_length_N=length,
  )
