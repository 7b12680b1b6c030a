"""The training loop: generate, score, verify, make_batch, update, observe.

One iteration, with the host waiting only at `<-`:

  traj   = generate(params, prompts, key)      dispatch
  traj   = score(params, traj)                 dispatch, unless update does it
  text   = decode(tokens)                   <- the read of a generation round
  reward = verifier.reward(examples, text)      while score runs
  traj   = make_batch(method, traj)            dispatch
  state  = update(state, method, traj)         dispatch
  metrics of the previous iteration            already computed

Checkpoints are taken at iteration boundaries: an interrupted iteration is
redone from its counters, bit for bit (tier E0).
"""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import functools
import json
import time
from typing import Any, ClassVar

from absl import logging
import jax
import jax.numpy as jnp

from rl_jax import serialization
from rl_jax.config import ExperimentConfig
from rl_jax.episodes import timeline
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.turn_taking import OPPONENT
from rl_jax.learning.update import Batch
from rl_jax.measures.entropy_change import EntropyChange
from rl_jax.records import metrics as metrics_lib
from rl_jax.records import progress, rollout_log, trackers
from rl_jax.rollouts.collect import Collector
from rl_jax.rollouts.host_selector import SavedSelector
from rl_jax.rollouts.lagged import LaggedWeights
from rl_jax.rollouts.rounds import Draw, metrics_of
from rl_jax.runs import assembly, directory, guards, lock, saving
from rl_jax.runs import policy as policy_lib
from rl_jax.runs import stages as stages_lib
from rl_jax.runs.callbacks import Callbacks
from rl_jax.runs.counters import Counters
from rl_jax.runs.row_watch import RowWatch
from rl_jax.runs.saving import Saver
from rl_jax.runs.slot_collector import SlotCollector
from rl_jax.runs.stopping import SessionClock
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes, profiling, stop_signal
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import TrainState


class Trainer:
  """One run in one work directory; continues the checkpoint it finds there.

  take_over: see lock.Lock. allow_change: see directory.check. callbacks: own
  objects, see callbacks.Callback.
  """

  def __init__(
    self,
    config: ExperimentConfig,
    workdir: str,
    *,
    take_over: bool = False,
    allow_change: Sequence[str] = (),
    callbacks: Sequence[Any] = (),
  ):
    config = assembly.with_compute_dtype(config)
    self.config, self.workdir = config, workdir
    self.profiler = profiling.Profiler()
    self.timeline = timeline.Timeline()
    self.callbacks = Callbacks(callbacks)
    mesh = assembly.prepare(config)
    self.changes = directory.check(config, workdir, allow_change)
    self.lock = lock.Lock(workdir, take_over)
    try:
      with jax.set_mesh(mesh):
        self.parts = assembly.assemble(
          config, workdir, mesh, self.changes.files, self.lock.writer
        )
        self._open()
    except BaseException:
      self.lock.release()
      raise

  def _open(self) -> None:
    """The state of a run and its files; continues what they hold."""
    config, workdir, writer = self.config, self.workdir, self.lock.writer
    self._trained = _Trained(self.parts.state)
    self._config_written = False
    self._begun_at = 0  # iterations done before this session
    self._change_metrics: dict[int, dict[str, float]] = {}
    self.counters = Counters()
    self.lagged = LaggedWeights(
      config.rollout.staleness,
      self.state.params,
      functools.partial(_kept, self.parts),
    )
    rate = config.optimizer.learning_rate
    self.entropy_change = EntropyChange(rate, self.parts.mesh)
    self.rollouts: rollout_log.RolloutLog | None = None  # of the last one
    self.watch = RowWatch(config, workdir, self.callbacks, writer)
    about = json.loads(serialization.to_json(config))
    self.writer = metrics_lib.MetricsWriter(
      workdir,
      trackers=trackers.make(config.tracking, workdir, about),
      writer=writer,
    )
    self.pending = metrics_lib.DelayedMetrics(self.writer)
    self.saver = Saver(workdir, config.checkpoint, writer)
    collector = self.parts.collector
    self._crosses_updates = isinstance(collector, SlotCollector)
    self._stateful: tuple[Stateful, ...] = (
      self.counters,
      self.writer,
      self._trained,
      self.watch,
      self.entropy_change,
      self.lagged,
      self.parts.runner,
      self.parts.judges,
      SavedSelector(self.parts.collector.selector),
      self.parts.policies,
      self.parts.stages.engine.drafts,
      *([collector] if isinstance(collector, SlotCollector) else []),
    )
    self._restore()

  @property
  def state(self) -> TrainState:
    """The newest state of the learner."""
    return self._trained.state

  def run(self) -> dict[str, Any]:
    """Trains to config.iterations; returns the newest row of metrics.

    SIGTERM and Ctrl-C save at the next boundary and exit (see `stop_signal`),
    and so does the end of stopping.session_seconds.
    """
    counters, total = self.counters, self.config.iterations
    rollout = self.config.rollout
    recorded = rollout.recorded_prompts == rollout.num_prompts
    clock = SessionClock(self.config.stopping.session_seconds)
    row = self.writer.last
    with (
      contextlib.closing(self),
      jax.set_mesh(self.parts.mesh),
      stop_signal.StopSignal() as stop,
      progress.Progress(
        total,
        counters.iteration,
        columns=progress.RECORDED if recorded else progress.SAMPLED,
        plain_every_seconds=1.0,
        shown=processes.is_main(),
      ) as line,
      jax.transfer_guard('disallow'),
    ):
      self.callbacks.call('on_start', self)
      self._evaluate_first()
      while counters.iteration < total and not (
        stop.requested or self.watch.has_ended(counters.iteration)
      ):
        self.lock.check()
        metrics = self._traced_iteration(counters.iteration + 1)
        self._write_config()
        metrics |= self._change_metrics.get(counters.iteration, {})
        if self._evaluation_due():
          metrics |= self._evaluate()
        written = self.pending.push(counters.iteration, metrics, self.rollouts)
        if written is not None:
          row = self.watch.see(written, counters)
          line.update(row)
        if self.saver.due(counters.iteration, metrics):
          row = self.save() or row
          line.update(row)
        self.saver.save_weights(counters.iteration, self.state.params)
        if clock.is_over() and counters.iteration < total:
          stop.request()
      if last := self.save():
        row = last
        line.update(row)
      self.saver.check_newest()
      self.callbacks.call('on_end', counters.iteration, row)
    if stop.requested:
      logging.warning(
        'saved iteration %d of %d in %s: run the same command to continue',
        counters.iteration,
        total,
        self.workdir,
      )
    stop.exit_if_requested()
    guards.check_end(self.watch.unjudged)
    return row

  def _evaluate_first(self) -> None:
    """Evaluates before the first iteration, once in all sessions."""
    first = self.counters.iteration == 0 and not self._trained.evaluated_first
    if first and self._evaluation_due():
      row = self.writer.log(0, self._evaluate())
      self.watch.stopping.see(row)
      self.saver.check_metric(row)
      self._trained.evaluated_first = True

  def iteration(self) -> dict[str, Any]:
    """One rollout and its optimizer steps; returns metrics, not yet read."""
    counters, config, parts = self.counters, self.config, self.parts
    started = time.perf_counter()
    frozen = parts.policies.frozen()
    params, step = self.state.params, counters.optimizer_steps
    _, version = self.lagged.sampler(params, step)
    draw = self._draw({**frozen, **params}, params, step)
    traj, scores, rounds, length_NG = parts.collector.collect(draw)
    size = config.rollout.generated_prompts
    next_serial = counters.group_serial + sum(
      size if one.serials is None else len(one.serials) for one in rounds
    )
    sampled = time.perf_counter()
    errors = rollout_log.sample_errors(rounds)
    self.watch.see_samples(errors)
    batch = Batch(frozen=frozen, method=parts.method, traj=traj, key=parts.key)
    probe = parts.probe
    if probe is not None and not probe.due(counters.iteration):
      probe = None
    if not self._crosses_updates:
      self.lagged.push(params, step)  # the update takes the buffers of params
    self._sample_ahead(next_serial)
    self._trained.state, traj, learned, steps = stages_lib.update(
      parts.stages,
      self.state,
      batch,
      counters.iteration,
      length_NG,
      probe,
    )
    self.timeline.updated(counters.iteration + 1, self.state)
    tokens = sum(r.tokens for r in rounds)
    metrics = {**scores, **learned}
    if self.lagged.history and not self._crosses_updates:
      metrics['rollout/steps_behind'] = step - version
    metrics |= self.entropy_change(metrics)
    counters.iteration += 1
    parts.policies.renew(self.state.params, counters.iteration)
    self.watch.keep_batch(counters.iteration, traj)
    counters.optimizer_steps += steps
    self.rollouts = self._rollout_log(rounds, traj, metrics)
    counters.group_serial = next_serial
    counters.tokens += tokens
    finished = time.perf_counter()
    return {
      **metrics,
      **metrics_of(rounds),
      **rollout_log.sampling_metrics(rounds),
      **parts.stages.engine.drafts.metrics(),
      'rollout/tokens_total': counters.tokens,
      'time/rollout_seconds': sampled - started,
      'time/iteration_seconds': finished - started,
      'time/tokens_per_second': tokens / (finished - started),
      'time/compilations': profiling.compilations(),
    }

  def _traced_iteration(self, number: int) -> dict[str, Any]:
    """An iteration, in the windows of the profiler and of the timeline."""
    drawn = functools.partial(self.timeline.run, self.iteration, number)
    return self.profiler.run(drawn, number)

  def _draw(self, scoring: Any, params: Any, step: int) -> Draw:
    """The inputs of the next batch; scoring: all weights that score.

    Episodes that are played across updates start with the newest weights, which
    are kept before they are used; others are sampled by those that lag.
    """
    earlier = self.lagged.history
    if self._crosses_updates:
      self.lagged.push(params, step)
      sampling, version = self.lagged.history[-1]
    else:
      sampling, version = self.lagged.sampler(params, step)
    beside = self.parts.beside_sampler()
    return Draw(
      scoring,
      self.parts.method,
      self.counters.group_serial,
      version,
      {**beside, **sampling},
      tuple(({**beside, **weights}, when) for weights, when in earlier),
    )

  def _rollout_log(self, rounds, traj, metrics):
    """The responses to be written of this iteration, from device arrays."""
    prompts = self.config.guards.log_rollouts
    return rollout_log.RolloutLog(
      rounds=rounds,
      first_serial=self.counters.group_serial,
      arrays=rollout_log.arrays(
        traj, metrics, prompts, self.config.rollout.recorded_prompts > 0
      ),
      prompts=prompts,
      tokenizer=self.parts.policy.tokenizer,
      stop=self.parts.collector.stop,
    )

  def _sample_ahead(self, serial: int) -> None:
    """Dispatches the next rollout, if other devices sample than train."""
    parts, last = self.parts, self.config.iterations - 1
    if parts.sampling_frozen is not None and self.counters.iteration < last:
      weights, version = self.lagged.history[0]
      weights = {**parts.beside_sampler(), **weights}
      assert isinstance(parts.collector, Collector), 'others do not sample'
      parts.collector.begin(weights, serial, version)

  def save(self) -> dict[str, Any]:
    """Writes what is pending and starts a checkpoint of this boundary."""
    self.lock.check()
    self._write_config()
    written = self.pending.flush()
    row = self.watch.see(written, self.counters) if written else {}
    self.counters.entropy = row.get('policy/entropy', self.counters.entropy)
    self.saver.save(
      self.counters.iteration,
      saving.arrays_of(self._stateful),
      saving.host_of(self._stateful),
      row,
    )
    self.parts.runner.forget(self.saver.oldest_host_state())
    self.callbacks.call('on_save', self.counters.iteration, row)
    return row

  def _write_config(self) -> None:
    """Once, when an iteration has been traced: it would refuse wrong pieces."""
    if not self._config_written:
      directory.write_config(
        self.config,
        self.workdir,
        self.changes,
        self._begun_at,
        self.lock.writer,
      )
      self.lock.check()
      policy_lib.describe(self.parts.policy, self.workdir)
      self._change_metrics = directory.change_metrics(self.workdir)
      self._config_written = True

  def draw_timeline(self, window: profiling.Window) -> None:
    """Writes a trace of the episodes of these iterations into the workdir."""
    runner = self.parts.runner
    assert isinstance(runner, SlotRunner), 'the run has no episodes'
    self.timeline = timeline.Timeline(
      window, runner.activity, f'{self.workdir}/timeline.json'
    )

  def close(self) -> None:
    """Frees workers, threads and files."""
    with contextlib.ExitStack() as stack:  # all, whichever of them fails
      stack.callback(self.lock.release)
      stack.callback(self.writer.close)
      stack.callback(self.saver.close)
      stack.callback(self.parts.runner.close)
      stack.callback(self.profiler.close)
      stack.callback(self.timeline.close)

  def _restore(self) -> None:
    restored = self.saver.restore(saving.arrays_of(self._stateful))
    if restored is None:
      self.writer.truncate_to({}, next_step=0)
      return
    for part in self._stateful:
      part.restore(restored.tree, restored.host_state)
    self._begun_at = self.counters.iteration
    logging.info('continuing after iteration %d', self.counters.iteration)

  def _evaluation_due(self) -> bool:
    every = self.config.evaluation.every
    return every > 0 and self.counters.iteration % every == 0

  def _evaluate(self) -> dict[str, float]:
    """Scores the policy as it is at this iteration boundary."""
    started = time.perf_counter()
    parts, found = self.parts, {}
    if parts.evaluator is not None:
      params = {**parts.policy.frozen, **self.state.params}
      policies = parts.policies.frozen().get('policies', {})
      if OPPONENT in policies:  # games are as in training
        params['policies'] = {OPPONENT: policies[OPPONENT]}
      found, _ = parts.evaluator.run(params)
    if parts.held_out is not None:
      found |= parts.held_out.run(
        parts.policies.frozen(), self.state, parts.method, parts.key
      )
    return {
      **{f'evaluation/{name}': value for name, value in found.items()},
      'time/evaluation_seconds': time.perf_counter() - started,
    }


@dataclasses.dataclass
class _Trained(Stateful):
  """The newest state of the learner; whether its start was evaluated."""

  name: ClassVar[str] = 'trainer'
  state: TrainState
  evaluated_first: bool = False  # and logged

  def arrays(self) -> dict[str, Any]:
    """See Stateful."""
    return {'state': self.state}

  def host(self) -> dict[str, Any]:
    """See Stateful."""
    return {'first_logged': self.evaluated_first}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    self.state = arrays['state']
    self.evaluated_first = host.get('first_logged', False)


def _kept(parts: assembly.Parts, params: Any) -> Any:
  """A copy that no update takes, on the devices that sample."""
  if parts.sampling_frozen is None:
    return _copied(params)
  mesh = parts.stages.engine.mesh
  return processes.put(params, mesh_lib.replicated(mesh))


# Outputs are their own buffers: the training state is donated.
_copied = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))
