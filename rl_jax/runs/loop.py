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

import contextlib
import dataclasses
import time
from typing import Any

from absl import logging
import jax

from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import Batch
from rl_jax.records import metrics as metrics_lib
from rl_jax.records import progress, rollout_log
from rl_jax.records.checkpoints import checkpointer
from rl_jax.runs import assembly, directory, guards, lock
from rl_jax.runs import stages as stages_lib
from rl_jax.runs.entropy_change import EntropyChange
from rl_jax.runtime import processes, profiling, stop_signal
from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.types import Metrics, Trajectories


@dataclasses.dataclass
class Counters:
  """The host's part of the state; JSON in every checkpoint."""

  iteration: int = 0
  optimizer_steps: int = 0
  group_serial: int = 0  # groups ever drawn: the counter of all randomness
  tokens: int = 0  # response tokens ever generated
  skipped_in_a_row: int = 0
  entropy: float | None = None  # of the iteration before

  def note_skipped(self, skipped: bool) -> int:
    """Iterations in a row without a finite step, the newest included."""
    self.skipped_in_a_row = self.skipped_in_a_row + 1 if skipped else 0
    return self.skipped_in_a_row


class Trainer:
  """One run in one work directory; continues the checkpoint it finds there.

  take_over: see lock.Lock.
  """

  def __init__(
    self, config: ExperimentConfig, workdir: str, *, take_over: bool = False
  ):
    config = assembly.with_compute_dtype(config)
    self.config, self.workdir = config, workdir
    self.profiler = profiling.Profiler()
    mesh = assembly.prepare(config, workdir)
    self.lock = lock.Lock(workdir, take_over)
    try:
      with jax.set_mesh(mesh):
        self.parts = assembly.assemble(config, workdir, mesh)
        self._open()
    except BaseException:
      self.lock.release()
      raise

  def _open(self) -> None:
    """The state of a run and its files; continues what they hold."""
    config, workdir = self.config, self.workdir
    self.state = self.parts.state
    self._config_written = False
    self.counters = Counters()
    rate = config.optimizer.learning_rate
    self.entropy_change = EntropyChange(rate, self.parts.mesh)
    # By iteration: of the last two, as metrics are read one iteration late.
    self.batches: dict[int, Trajectories] = {}
    self.rollouts: rollout_log.RolloutLog | None = None  # of the last one
    self.warnings = RepeatedWarnings()
    self.writer = metrics_lib.MetricsWriter(workdir)
    self.pending = metrics_lib.DelayedMetrics(self.writer)
    self.checkpointer = checkpointer.Checkpointer(
      f'{workdir}/checkpoints',
      keep_last=config.checkpoint.keep_last,
      keep_best=config.checkpoint.keep_best,
      best_metric=config.checkpoint.best_metric,
      on_save_error=config.checkpoint.on_save_error,
    )
    self._restore()

  def run(self) -> dict[str, Any]:
    """Trains to config.iterations; returns the newest metrics.

    SIGTERM and Ctrl-C save at the next boundary and exit (see `stop_signal`).
    """
    counters, total = self.counters, self.config.iterations
    row: dict[str, Any] = {}
    with (
      contextlib.closing(self),
      jax.set_mesh(self.parts.mesh),
      stop_signal.StopSignal() as stop,
      progress.Progress(
        total, counters.iteration, shown=processes.is_main()
      ) as line,
      jax.transfer_guard('disallow'),
    ):
      if counters.iteration == 0 and self._evaluation_due():
        self.writer.log(0, self._evaluate())
      while counters.iteration < total and not stop.requested:
        self.lock.check()
        metrics = self.profiler.run(self.iteration, counters.iteration + 1)
        self._write_config()
        if self._evaluation_due():
          metrics |= self._evaluate()
        written = self.pending.push(counters.iteration, metrics, self.rollouts)
        if written is not None:
          row = self._watch(written)
          line.update(row)
        if counters.iteration % self.config.checkpoint.every == 0:
          row = self.save() or row
          line.update(row)
      if last := self.save():
        row = last
        line.update(row)
      self.checkpointer.check_newest()
    if stop.requested:
      logging.warning(
        'saved iteration %d of %d in %s: run the same command to continue',
        counters.iteration,
        total,
        self.workdir,
      )
    stop.exit_if_requested()
    return row

  def iteration(self) -> Metrics:
    """One rollout and its optimizer steps; returns metrics, not yet read."""
    counters, config = self.counters, self.config
    started = time.perf_counter()
    frozen = self.parts.policies.frozen()
    traj, scores, rounds, length_NG = self.parts.collector.collect(
      {**frozen, **self.state.params},
      self.parts.method,
      counters.group_serial,
      counters.optimizer_steps,
    )
    sampled = time.perf_counter()
    batch = Batch(
      frozen=frozen, method=self.parts.method, traj=traj, key=self.parts.key
    )
    self.state, traj, learned, steps = stages_lib.update(
      self.parts.stages, self.state, batch, counters.iteration, length_NG
    )
    tokens = sum(r.tokens for r in rounds)
    metrics = {**scores, **learned}
    metrics |= self.entropy_change(metrics)
    counters.iteration += 1
    self.parts.policies.renew(self.state.params, counters.iteration)
    self.batches[counters.iteration] = traj
    self.batches.pop(counters.iteration - 2, None)
    counters.optimizer_steps += steps
    self.rollouts = rollout_log.RolloutLog(
      rounds=rounds,
      first_serial=counters.group_serial,
      arrays=rollout_log.arrays(traj, metrics, config.guards.log_rollouts),
      prompts=config.guards.log_rollouts,
      tokenizer=self.parts.policy.tokenizer,
      stop=self.parts.collector.stop,
    )
    counters.group_serial += len(rounds) * config.rollout.num_prompts
    counters.tokens += tokens
    finished = time.perf_counter()
    return {
      **metrics,
      **rollout_log.sampling_metrics(rounds),
      'rollout/tokens_total': counters.tokens,
      'time/rollout_seconds': sampled - started,
      'time/iteration_seconds': finished - started,
      'time/tokens_per_second': tokens / (finished - started),
      'time/compilations': profiling.compilations(),
    }

  def save(self) -> dict[str, Any]:
    """Writes what is pending and starts a checkpoint of this boundary."""
    self.lock.check()
    self._write_config()
    written = self.pending.flush()
    row = self._watch(written) if written else {}
    self.counters.entropy = row.get('policy/entropy', self.counters.entropy)
    self.checkpointer.save(
      self.counters.iteration,
      self._tree(),
      {
        'counters': dataclasses.asdict(self.counters),
        'offsets': self.writer.offsets(),
        'verifications': self.parts.verifier.mark(),
      },
      {k: v for k, v in row.items() if k.startswith(('evaluation', 'reward'))},
    )
    oldest = self.checkpointer.oldest_host_state() or {}
    self.parts.verifier.forget(oldest.get('verifications', 0))
    return row

  def _write_config(self) -> None:
    """Once, when an iteration has been traced: it would refuse wrong pieces."""
    if not self._config_written:
      directory.write_config(self.config, self.workdir)
      self._config_written = True

  def close(self) -> None:
    """Frees workers, threads and files."""
    with contextlib.ExitStack() as stack:  # all, whichever of them fails
      stack.callback(self.lock.release)
      stack.callback(self.writer.close)
      stack.callback(self.checkpointer.close)
      stack.callback(self.parts.verifier.close)

  def _tree(self) -> dict[str, Any]:
    """The arrays of a checkpoint."""
    return {
      'state': self.state,
      'selector': self.parts.collector.selector.state,
      **self.parts.policies.checkpoint(),
    }

  def _restore(self) -> None:
    restored = self.checkpointer.restore(
      checkpointer.abstract_tree(self._tree())
    )
    if restored is None:
      self.writer.truncate_to({}, next_step=0)
      return
    self.state = restored.tree['state']
    self.parts.collector.selector.state = restored.tree['selector']
    for name in self.parts.policies.checkpoint():
      self.parts.policies.trees[name] = restored.tree[name]
    host = restored.host_state
    self.counters = Counters(**host['counters'])
    self.entropy_change.restore(self.counters.entropy)
    self.parts.verifier.restore(host.get('verifications', 0))
    self.writer.truncate_to(
      host['offsets'], next_step=self.counters.iteration + 1
    )
    logging.info('continuing after iteration %d', self.counters.iteration)

  def _watch(self, row: dict[str, Any]) -> dict[str, Any]:
    """Ends the run if a guard's limit is reached; else returns the row."""
    skipped = row['train/skipped'] > 0
    if skipped:
      path = f'{self.workdir}/skipped_{row["step"]}.npz'
      metrics_lib.save_arrays(path, self.batches[row['step']])
      text = 'non-finite loss or gradient: its batch is in %s'
      self.warnings.warn(text, path)
    in_a_row = self.counters.note_skipped(skipped)
    guards.check(self.config.guards, row, in_a_row, self.workdir)
    return row

  def _evaluation_due(self) -> bool:
    every = self.config.evaluation.every
    return every > 0 and self.counters.iteration % every == 0

  def _evaluate(self) -> dict[str, float]:
    """Scores the policy as it is at this iteration boundary."""
    started = time.perf_counter()
    found, _ = self.parts.evaluator.run(
      {**self.parts.policy.frozen, **self.state.params}
    )
    return {
      **{f'evaluation/{name}': value for name, value in found.items()},
      'time/evaluation_seconds': time.perf_counter() - started,
    }
