"""The training loop: generate, score, verify, make_batch, update, observe.

One iteration, with the host waiting only where `<-` stands:

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

from collections.abc import Sequence
import contextlib
import dataclasses
import json
import time
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp

from rl_jax import serialization
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import Batch
from rl_jax.records import metrics as metrics_lib
from rl_jax.records import progress, rollout_log, trackers
from rl_jax.rollouts import lagged as lagged_lib
from rl_jax.rollouts.episodes import OPPONENT
from rl_jax.rollouts.rounds import metrics_of
from rl_jax.runs import assembly, directory, guards, lock
from rl_jax.runs import policy as policy_lib
from rl_jax.runs import stages as stages_lib
from rl_jax.runs.callbacks import Callbacks
from rl_jax.runs.counters import Counters
from rl_jax.runs.entropy_change import EntropyChange
from rl_jax.runs.row_watch import RowWatch
from rl_jax.runs.saving import Saver
from rl_jax.runs.stopping import SessionClock
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes, profiling, stop_signal


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
    self.callbacks = Callbacks(callbacks)
    mesh = assembly.prepare(config)
    self.changes = directory.check(config, workdir, allow_change)
    self.lock = lock.Lock(workdir, take_over)
    try:
      with jax.set_mesh(mesh):
        self.parts = assembly.assemble(
          *(config, workdir, mesh, self.changes.files, self.lock.writer)
        )
        self._open()
    except BaseException:
      self.lock.release()
      raise

  def _open(self) -> None:
    """The state of a run and its files; continues what they hold."""
    config, workdir, writer = self.config, self.workdir, self.lock.writer
    self.state = self.parts.state
    self._config_written = False
    self._begun_at = 0  # iterations done before this session
    self._first_logged = False  # the evaluation before training
    self._change_metrics: dict[int, dict[str, float]] = {}
    self.counters = Counters()
    staleness = config.rollout.staleness
    kept = self._kept(self.state.params) if staleness else None
    self.lagged = lagged_lib.initial(staleness, kept, 0)
    rate = config.optimizer.learning_rate
    self.entropy_change = EntropyChange(rate, self.parts.mesh)
    self.rollouts: rollout_log.RolloutLog | None = None  # of the last one
    self.watch = RowWatch(config, workdir, self.callbacks, writer)
    self.unjudged = ''  # why no sample of the last iteration was judged
    about = json.loads(serialization.to_json(config))
    self.writer = metrics_lib.MetricsWriter(
      workdir,
      trackers=trackers.make(config.tracking, workdir, about),
      writer=writer,
    )
    self.pending = metrics_lib.DelayedMetrics(self.writer)
    self.saver = Saver(workdir, config.checkpoint, writer)
    self._restore()

  def run(self) -> dict[str, Any]:
    """Trains to config.iterations; returns the newest row of metrics.

    SIGTERM and Ctrl-C save at the next boundary and exit (see `stop_signal`),
    and so does the end of stopping.session_seconds.
    """
    counters, total = self.counters, self.config.iterations
    rollout = self.config.rollout
    recorded = rollout.logged_prompts == rollout.num_prompts
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
        metrics = self.profiler.run(self.iteration, counters.iteration + 1)
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
    guards.check_end(self.unjudged)
    return row

  def _evaluate_first(self) -> None:
    """Before the first iteration, once in all sessions."""
    first = self.counters.iteration == 0 and not self._first_logged
    if first and self._evaluation_due():
      row = self.writer.log(0, self._evaluate())
      self.watch.stopping.see(row)
      self.saver.check_metric(row)
      self._first_logged = True

  def iteration(self) -> dict[str, Any]:
    """One rollout and its optimizer steps; returns metrics, not yet read."""
    counters, config, parts = self.counters, self.config, self.parts
    started = time.perf_counter()
    frozen = parts.policies.frozen()
    params, step = self.state.params, counters.optimizer_steps
    sampling, version = lagged_lib.sampler(self.lagged, params, step)
    traj, scores, rounds, length_NG = parts.collector.collect(
      {**frozen, **params},
      parts.method,
      counters.group_serial,
      version,
      {**parts.beside_sampler(), **sampling},
    )
    next_serial = counters.group_serial
    next_serial += len(rounds) * config.rollout.num_prompts
    sampled = time.perf_counter()
    errors = rollout_log.sample_errors(rounds)
    self.watch.see_samples(errors)
    self.unjudged = guards.why_unjudged(errors)
    batch = Batch(frozen=frozen, method=parts.method, traj=traj, key=parts.key)
    probe = parts.probe
    if probe is not None and not probe.due(counters.iteration):
      probe = None
    if self.lagged:  # the update takes the buffers of params
      self.lagged = lagged_lib.pushed(self.lagged, self._kept(params), step)
    self._sample_ahead(next_serial)
    self.state, traj, learned, steps = stages_lib.update(
      parts.stages,
      self.state,
      batch,
      counters.iteration,
      length_NG,
      probe,
    )
    tokens = sum(r.tokens for r in rounds)
    metrics = {**scores, **learned}
    if self.lagged:
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

  def _rollout_log(self, rounds, traj, metrics):
    """The responses to be written of this iteration, from device arrays."""
    prompts = self.config.guards.log_rollouts
    return rollout_log.RolloutLog(
      rounds=rounds,
      first_serial=self.counters.group_serial,
      arrays=rollout_log.arrays(
        traj, metrics, prompts, self.config.rollout.logged_prompts > 0
      ),
      prompts=prompts,
      tokenizer=self.parts.policy.tokenizer,
      stop=self.parts.collector.stop,
    )

  def _sample_ahead(self, serial: int) -> None:
    """Dispatches the next rollout, if other devices sample than train."""
    parts, last = self.parts, self.config.iterations - 1
    if parts.sampling_frozen is not None and self.counters.iteration < last:
      weights, version = self.lagged[0]
      weights = {**parts.beside_sampler(), **weights}
      parts.collector.begin(weights, serial, version)

  def _kept(self, params: Any) -> Any:
    """A copy that no update takes, on the devices that sample."""
    if self.parts.sampling_frozen is None:
      return _copied(params)
    mesh = self.parts.stages.engine.mesh
    return processes.put(params, mesh_lib.replicated(mesh))

  def save(self) -> dict[str, Any]:
    """Writes what is pending and starts a checkpoint of this boundary."""
    self.lock.check()
    self._write_config()
    written = self.pending.flush()
    row = self.watch.see(written, self.counters) if written else {}
    self.counters.entropy = row.get('policy/entropy', self.counters.entropy)
    self.saver.save(
      self.counters.iteration,
      self._tree(),
      {
        'counters': dataclasses.asdict(self.counters),
        'offsets': self.writer.offsets(),
        'first_logged': self._first_logged,
        'stopping': self.watch.stopping.state(),
        'unjudged': self.unjudged,
        'verifications': self.parts.verifier.mark(),
        'judges': self.parts.judges.state,
        'lagged_steps': [step for _, step in self.lagged],
      },
      row,
    )
    oldest = self.saver.oldest_host_state()
    self.parts.verifier.forget(oldest.get('verifications', 0))
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

  def close(self) -> None:
    """Frees workers, threads and files."""
    with contextlib.ExitStack() as stack:  # all, whichever of them fails
      stack.callback(self.lock.release)
      stack.callback(self.writer.close)
      stack.callback(self.saver.close)
      stack.callback(self.parts.verifier.close)
      stack.callback(self.profiler.close)

  def _tree(self) -> dict[str, Any]:
    """The arrays of a checkpoint."""
    lagged = [params for params, _ in self.lagged]
    return {
      'state': self.state,
      'selector': self.parts.collector.selector.state,
      **({'lagged_weights': lagged} if lagged else {}),
      **self.parts.policies.checkpoint(),
      **self.parts.stages.engine.drafts.checkpoint(),
    }

  def _restore(self) -> None:
    restored = self.saver.restore(self._tree())
    if restored is None:
      self.writer.truncate_to({}, next_step=0)
      return
    self.state = restored.tree['state']
    self.parts.collector.selector.state = restored.tree['selector']
    for name in self.parts.policies.checkpoint():
      self.parts.policies.trees[name] = restored.tree[name]
    self.parts.stages.engine.drafts.restore(restored.tree)
    host = restored.host_state
    self.lagged = tuple(
      zip(
        restored.tree.get('lagged_weights', ()),
        host.get('lagged_steps', ()),
        strict=True,
      )
    )
    self.counters = Counters(**host['counters'])
    self._begun_at = self.counters.iteration
    self._first_logged = host.get('first_logged', False)
    self.unjudged = host.get('unjudged', '')
    self.entropy_change.restore(self.counters.entropy)
    if 'stopping' in host:
      self.watch.stopping.restore(host['stopping'])
    self.parts.verifier.restore(host.get('verifications', 0))
    self.parts.judges.state = host.get('judges', {})
    self.writer.truncate_to(
      host['offsets'], next_step=self.counters.iteration + 1
    )
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


# Outputs are buffers of their own: the training state is donated.
_copied = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))
