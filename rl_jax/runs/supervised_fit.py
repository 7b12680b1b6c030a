"""Supervised training to a step, an accuracy or a time; saved and resumed."""

from collections.abc import Callable
import contextlib
import dataclasses
import itertools
import time
from typing import Any

from absl import logging
import numpy as np

from rl_jax.checks import checked, ranged
from rl_jax.records.checkpoints import checkpointer
from rl_jax.records.checkpoints.files import check_directory
from rl_jax.records.metrics import MetricsWriter
from rl_jax.rollouts.completions import encode_logged
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs.lock import Lock
from rl_jax.runs.supervised import (
  SupervisedTrainer,
  shuffled_batches,
  supervised_rows,
)
from rl_jax.runtime.stop_signal import StopSignal
from rl_jax.tasks import base
from rl_jax.types import Trajectories


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class FitConfig:
  """When supervised training stops, evaluates and saves.

  It stops at the first of: max_steps, max_seconds of training (evaluations not
  counted), or an evaluation with accuracy at or above stop_accuracy.
  """

  batch_size: int = ranged(256, 1)
  max_steps: int = ranged(1000, 1)
  max_seconds: float = ranged(float('inf'), 0.0)
  stop_accuracy: float = ranged(float('inf'), 0.0)
  evaluate_every: int = ranged(100, 1)
  max_response_tokens: int = ranged(32, 1)


def pair_rows(
  prompts: PromptSet, indices: np.ndarray, max_response_tokens: int
) -> Trajectories:
  """Rows of the first recorded response, or of the task's own target.

  Each is closed by the end token; of a conversation the assistant's turns are
  trained (rollouts.completions).
  """
  examples, *arrays = prompts.batch(indices)
  encoded = [
    encode_logged(e, base.logged(prompts.task, e)[0], prompts.tokenizer)
    for e in examples
  ]
  targets, trained = zip(*encoded, strict=True)
  return supervised_rows(tuple(arrays), targets, max_response_tokens, trained)


@dataclasses.dataclass
class _Progress:
  """The host's part of the state; JSON in every checkpoint."""

  step: int = 0
  seconds: float = 0.0  # of training
  done: bool = False
  row: dict[str, float] = dataclasses.field(default_factory=dict)


class _Files:
  """Checkpoints and metrics of one work directory."""

  def __init__(self, workdir: str, take_over: bool):
    check_directory(workdir)
    self._lock = Lock(workdir, take_over)
    self._writer = MetricsWriter(workdir)
    self._saver = checkpointer.Checkpointer(
      f'{workdir}/checkpoints', keep_best=0
    )

  def restore(self, trainer: SupervisedTrainer) -> _Progress:
    """Puts the newest state into the trainer, if there is one."""
    restored = self._saver.restore(checkpointer.abstract_tree(trainer.state))
    if restored is None:
      self._writer.truncate_to({}, next_step=0)
      return _Progress()
    trainer.state = restored.tree
    host = dict(restored.host_state)
    offsets = host.pop('offsets')
    self._writer.truncate_to(offsets, next_step=host['step'] + 1)
    return _Progress(**host)

  def save(
    self, trainer: SupervisedTrainer, at: _Progress, row: dict[str, Any]
  ) -> None:
    """Writes the row and starts a checkpoint of this step."""
    self._lock.check()
    at.row = self._writer.log(at.step, row)
    host = {**dataclasses.asdict(at), 'offsets': self._writer.offsets()}
    self._saver.save(at.step, trainer.state, host)

  def check(self) -> None:
    self._saver.check_newest()

  def close(self) -> None:
    with contextlib.ExitStack() as stack:  # all, whichever of them fails
      stack.callback(self._lock.release)
      stack.callback(self._writer.close)
      stack.callback(self._saver.close)


def fit(
  trainer: SupervisedTrainer,
  prompts: PromptSet,
  config: FitConfig,
  workdir: str,
  evaluate: Callable[[Any], dict[str, float]],
  *,
  seed: int = 0,
  first_batch: int = 0,
  take_over: bool = False,
) -> dict[str, float]:
  """Trains and returns the last row of metrics; resumes in workdir.

  Checkpoints at every evaluation, so that Ctrl-C loses nothing; the signal's
  exit code is documented in `stop_signal`.

  Args:
    evaluate: params -> metrics with 'pass_at_1'.
    first_batch: batches of the seed's order that an earlier stage has used.
    take_over: see lock.Lock.
  """
  files = _Files(workdir, take_over)
  at = files.restore(trainer)
  batches = shuffled_batches(len(prompts), config.batch_size, seed)
  batches = itertools.islice(batches, first_batch + at.step, None)
  with contextlib.closing(files), StopSignal() as stop:
    while not (at.done or stop.requested):
      started = time.perf_counter()
      rows = pair_rows(prompts, next(batches), config.max_response_tokens)
      metrics = trainer.step(rows)
      # Read here, so that the seconds are those of the step.
      nll = float(metrics['train/nll'])
      at.seconds += time.perf_counter() - started
      at.step += 1
      at.done = at.step >= config.max_steps or at.seconds >= config.max_seconds
      if at.step % config.evaluate_every and not (at.done or stop.requested):
        continue
      found = evaluate(trainer.params)
      at.done = at.done or found['pass_at_1'] >= config.stop_accuracy
      row = {
        'train/nll': nll,
        'train/grad_norm': metrics['train/grad_norm'],
        'time/train_seconds': at.seconds,
        **{f'evaluation/{k}': v for k, v in found.items()},
      }
      files.save(trainer, at, row)
      logging.info(
        'supervised step %d, %.0f s: nll %.3f, greedy accuracy %.3f',
        at.step,
        at.seconds,
        nll,
        found['pass_at_1'],
      )
    files.check()
  stop.exit_if_requested()
  return at.row
