"""Whole training runs as one program, for tasks that verify on the device.

The four stages of an iteration are one function, scanned over iterations. Runs
that differ in their seeds, learning rates and float fields of their methods go
through one program side by side:

  jit(shard_map over devices(map or vmap over runs(scan over iterations)))

Draws are functions of the same counters as in the loop, so a run samples what
`loop.Trainer` samples from the same configuration (tier E2). Nothing is read
before the end: no checkpoints, and guards judge the finished run.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math
import time
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np

from rl_jax import config as config_lib
from rl_jax import serialization
from rl_jax.config import ExperimentConfig
from rl_jax.measures import entropy_change
from rl_jax.method import Method
from rl_jax.runs import assembly, stages
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.scanned import evaluation as scanned_evaluation
from rl_jax.runs.scanned import prompts as scanned_prompts
from rl_jax.runs.scanned import run as scanned_run
from rl_jax.runtime import mesh
from rl_jax.runtime.platform import Platform
from rl_jax.tasks.environments.base import is_environment
from rl_jax.types import TrainState, Trajectories

MAX_PROMPTS = 1_000_000  # all prompts lie on the device, encoded


def refusal(config: ExperimentConfig) -> str | None:
  """Why the configuration must go through the loop, or None."""
  reason = _reason(config)
  return reason and f'this run cannot be jitted as a whole: {reason}'


def _reason(config: ExperimentConfig) -> str | None:
  method, task = config.method, config.task
  if is_environment(task):
    if not task.supports('step_device'):
      return f'environments of {type(task).__name__} answer on the host'
  elif not task.supports('reward_device'):
    return f'{type(task).__name__} has no device verifier (reward_device)'
  if config.verifier.num_workers:
    return 'verifier.num_workers > 0: rewards come from worker processes'
  if config.rollout.stop:
    return 'rollout.stop: device verifiers support only the end token'
  if method.group_filter is not None:
    return (
      'method.group_filter: dynamic sampling draws rounds until the host has '
      'counted enough groups'
    )
  if config.rollout.window_tokens is not None:
    return 'rollout.window_tokens: rows wait on the host'
  if config.rollout.speculative is not None:
    return 'rollout.speculative: drafts are made only in the loop'
  if config.rollout.recorded_prompts not in (0, config.rollout.num_prompts):
    return 'rollout.recorded_prompts: a mixture of data and samples'
  recorded = config.rollout.recorded_prompts and config.rollout.turns is None
  if recorded and config.evaluation.every:
    return 'evaluation.every: losses of held-out rows are those of the loop'
  if config.reward_models:
    return 'reward_models: learned rewards belong to the loop'
  if config.judges:
    return 'judges: they read text on the host'
  if method.rollout is not None:
    name = type(method.rollout).__name__
    return f'method.rollout: {name} reads responses on the host'
  if config.update.minibatch_rows is not None:
    return 'update.minibatch_rows: rows are shuffled in the loop'
  if config.evaluation.borda_power is not None:
    return 'evaluation.borda_power: votes are counted on the host'
  if config.evaluation.beams is not None:
    return 'evaluation.beams: beam search belongs to the loop'
  if not config.evaluation.greedy or config.evaluation.intervals:
    return 'evaluation.greedy, evaluation.intervals: they belong to the loop'
  if config.evaluation.options:
    return 'evaluation.options: options are scored in the loop'
  if config.evaluation.averages:
    return 'evaluation.averages: averages are those of the loop'
  if config.evaluation.sets:
    return 'evaluation.sets: one split of the task is evaluated'
  if config.mesh.rollout_devices:
    return 'mesh.rollout_devices: samplers and trainer are one program'
  if math.prod(config.mesh.sizes().values()) > 1:
    return 'mesh: one run stays on one device; leave all its axes at 1'
  if config.stopping.metric is not None:
    return 'stopping.metric: rows are read when the run is over'
  if config.diagnostics.influence_every:
    return 'diagnostics.influence_every: influence is measured in the loop'
  count = task.num_prompts('train')
  if count > MAX_PROMPTS:
    return f'task: {count} prompts, of which {MAX_PROMPTS} fit on the device'
  return None


def program_key(config: ExperimentConfig) -> tuple[Any, str]:
  """Equal for configurations that one program runs side by side.

  They differ in the seed, the learning rate and float fields of the method;
  those of `logits` are part of the sampler and must be the same.
  """
  method = config.method
  rest = dataclasses.replace(
    config,
    seed=0,
    optimizer=dataclasses.replace(config.optimizer, learning_rate=0.0),
    method=Method(logits=method.logits, selector=method.selector),
  )
  return jax.tree.structure(method), serialization.to_json(rest)


def rows(
  metrics: dict[str, np.ndarray], run: int, every: int
) -> list[dict[str, Any]]:
  """The metrics of one run as the loop would have written them, with steps.

  every: iterations between evaluations, 0 for none.
  """
  last = metrics['reward/mean'].shape[1]
  found = [{'step': step} for step in range(last + 1)]
  for name, values in metrics.items():
    if name.startswith('evaluation/'):
      steps = range(0, last + 1, every)
    elif name == 'policy/entropy_change':  # the first has none before it
      steps, values = range(2, last + 1), values[:, 1:]
    else:
      steps = range(1, last + 1)
    for step, value in zip(steps, values[run], strict=True):
      found[step][name] = value.item()
  return found[1:] if len(found[0]) == 1 else found


def _check_together(configs):
  """Raises ValueError for runs that cannot share a program."""
  first = configs[0]
  for config in configs:
    config_lib.validate(config)
    if why := refusal(config):
      raise ValueError(why)
    if program_key(config) != program_key(first):
      raise ValueError(
        'runs of one program differ only in seed, learning rate and method '
        'floats:\n  ' + '\n  '.join(serialization.difference(first, config))
      )


class WholeRuns:
  """Compiled on `run`; runs are split over as many devices as divide them.

  vectorize: all runs of a device in step (vmap), or one after the other
  (lax.map). None: vmap, except on CPUs, where it gains nothing.
  Raises ValueError for what must go through the loop, or does not go together.
  """

  def __init__(
    self, configs: Sequence[ExperimentConfig], vectorize: bool | None = None
  ):
    self.config = first = configs[0]
    _check_together(configs)
    if vectorize is None:
      vectorize = not Platform.of_process().is_cpu
    self._vectorize = vectorize
    devices = jax.devices()[: np.gcd(len(configs), jax.device_count())]
    self._mesh = jax.sharding.Mesh(np.asarray(devices), ('runs',))
    self._one = one = mesh.make_mesh(first.mesh, devices[:1])
    policies = [policy_lib.load(c.model, c.task, c.seed, one) for c in configs]
    policy = policies[0]
    configs = [
      assembly.with_special_ids(config, policy.tokenizer) for config in configs
    ]
    first = configs[0]
    assembly.check_lengths(first, policy.model)
    static = (first, policy.model, policy.tokenizer)
    functions, evaluation = stages.make_functions(*static), first.evaluation
    held_out = judge = None
    if evaluation.every and evaluation.split is not None:
      judge = scanned_evaluation.JittedEvaluation(*static)
      held_out = scanned_prompts.encode(
        first, policy.tokenizer, evaluation.split, evaluation.num_prompts
      )
    self._run = scanned_run.JittedRun(
      first, policy.model, policy.tokenizer, functions, judge
    )
    learns = bool(first.rollout.recorded_prompts)  # from recorded rows
    drawn = first.model.path is None  # other weights for every seed
    self._shared = scanned_run.Shared(
      recorded=scanned_prompts.recorded(first, policy, one) if learns else None,
      prompts=scanned_prompts.encode(first, policy.tokenizer),
      held_out=held_out,
      frozen={} if drawn else jax.device_get(policy.frozen),
    )
    runs = [
      scanned_run.Run(
        key_data=jax.random.key_data(jax.random.key(config.seed)),
        method=config.method.as_arrays(),
        learning_rate=jnp.float32(config.optimizer.learning_rate),
        params=policy.trainable,
        frozen=policy.frozen if drawn else {},
        groups_IKM=jnp.stack(
          [
            functions.minibatches(config.seed, i, config.rollout.num_prompts)
            for i in range(config.iterations)
          ]
        ),
      )
      for config, policy in zip(configs, policies, strict=True)
    ]
    self._runs = jax.tree.map(lambda *x: np.stack(x), *jax.device_get(runs))

  def run_by_stages(
    self, keep: Callable[[Trajectories], Any] = lambda traj: None
  ) -> tuple[dict[str, np.ndarray], TrainState, Any]:
    """Returns what `run` returns, from programs for the stages on one device.

    For many methods with few runs of each, where compiling is most of the time.
    """
    found, seconds = [], []
    with jax.set_mesh(self._one):
      one_run = self._run.by_stages(jax.device_put(self._shared), keep)
      for i in range(len(self._runs.learning_rate)):
        started = time.perf_counter()
        run = jax.tree.map(lambda x, i=i: x[i], self._runs)
        found.append(one_run(jax.device_put(run)))
        seconds.append(time.perf_counter() - started)
    state, metrics, kept = jax.tree.map(lambda *x: np.stack(x), *found)
    # The median is without compilation if there are three runs.
    seconds = np.median(seconds) / metrics['reward/mean'].shape[1]
    return self._finished(metrics, seconds), state, kept

  def run(
    self, keep: Callable[[Trajectories], Any] = lambda traj: None
  ) -> tuple[dict[str, np.ndarray], TrainState, Any]:
    """(metrics [S, I] by name, final states [S, ...], what `keep` kept).

    keep: arrays of every iteration's rollout to return with axes [S, I, ...].
    """

    def all_runs(shared, runs):
      def one(run):
        return self._run(shared, run, keep)

      return jax.vmap(one)(runs) if self._vectorize else lax.map(one, runs)

    of_runs, replicated = PartitionSpec('runs'), PartitionSpec()
    program = jax.shard_map(
      all_runs,
      mesh=self._mesh,
      in_specs=(replicated, of_runs),
      out_specs=of_runs,
      check_vma=False,
    )
    with jax.set_mesh(self._mesh):
      shared = jax.device_put(
        self._shared, NamedSharding(self._mesh, replicated)
      )
      runs = jax.device_put(self._runs, NamedSharding(self._mesh, of_runs))
      compiled = jax.jit(program).lower(shared, runs).compile()
      started = time.perf_counter()  # seconds are those of the runs only
      state, metrics, kept = compiled(shared, runs)
      metrics, kept = jax.device_get((metrics, kept))
    seconds = (time.perf_counter() - started) / metrics['reward/mean'].size
    return self._finished(metrics, seconds), state, kept

  def _finished(self, metrics, seconds):
    """Adds what the loop computes on the host."""
    ones = np.ones_like(metrics['reward/mean'])
    tokens = np.cumsum(metrics.pop('rollout/tokens'), axis=1)
    found: dict[str, Any] = {
      **metrics,
      **entropy_change.changes_over_course(
        metrics, self._runs.learning_rate[:, None]
      ),
      'rollout/rounds': ones,
      'rollout/reward': metrics['reward/mean'],  # nothing is dropped
      'rollout/tokens_total': tokens,
      'rollout/reward_errors': 0 * ones,
      **self._episodes(ones),
      'time/iteration_seconds': seconds * ones,
    }
    return found

  def _episodes(self, ones):
    """Returns what cannot happen to episodes on the device."""
    rollout = self.config.rollout
    if rollout.turns is None or rollout.recorded_prompts:
      return {}
    never = ('cut_observations', 'mismatches', 'failed_resets')
    return {f'episode/{name}': 0 * ones for name in never}
