"""Supervised training to a step, an accuracy or a time; saved and resumed."""

from collections.abc import Callable
import dataclasses
import itertools
import time
from typing import Any

from absl import logging
import numpy as np

from rl_jax import checkpoint
from rl_jax.metrics import MetricsWriter
from rl_jax.prompts import PromptSet
from rl_jax.signals import StopSignal
from rl_jax.supervised import (
  SupervisedTrainer,
  shuffled_batches,
  supervised_rows,
)
from rl_jax.types import Trajectories


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitConfig:
  """When supervised training stops, evaluates and saves.

  It stops at the first of: max_steps, max_seconds of training (evaluations not
  counted), or an evaluation with accuracy at or above stop_accuracy.
  """

  batch_size: int = 256
  max_steps: int = 1000
  max_seconds: float = float('inf')
  stop_accuracy: float = float('inf')
  evaluate_every: int = 100
  max_response_tokens: int = 32


def pair_rows(
  prompts: PromptSet, indices: np.ndarray, max_response_tokens: int
) -> Trajectories:
  """Rows of a task's own targets, each closed by the end token."""
  examples, *arrays = prompts.batch(indices)
  tokenizer = prompts.tokenizer
  targets = [
    [*tokenizer.encode(prompts.task.target(e)), tokenizer.eos_ids[0]]
    for e in examples
  ]
  return supervised_rows(tuple(arrays), targets, max_response_tokens)


def fit(
  trainer: SupervisedTrainer,
  prompts: PromptSet,
  config: FitConfig,
  workdir: str,
  evaluate: Callable[[Any], dict[str, float]],
  *,
  seed: int = 0,
  first_batch: int = 0,
) -> dict[str, float]:
  """Trains and returns the last row of metrics; resumes in workdir.

  Checkpoints at every evaluation, so that Ctrl-C loses nothing; the signal's
  exit code is documented in `signals`.

  Args:
    evaluate: params -> metrics with 'pass_at_1'.
    first_batch: batches of the seed's order that an earlier stage has used.
  """
  writer = MetricsWriter(workdir)
  saver = checkpoint.Checkpointer(f'{workdir}/checkpoints', keep_best=0)
  restored = saver.restore(checkpoint.abstract_tree(trainer.state))
  host = {'step': 0, 'seconds': 0.0, 'done': False, 'row': {}}
  if restored is not None:
    trainer.state, host = restored.tree, restored.host_state
    writer.truncate_to(host['offsets'], next_step=host['step'] + 1)
  else:
    writer.truncate_to({}, next_step=0)
  row = host['row']
  batches = shuffled_batches(len(prompts), config.batch_size, seed)
  batches = itertools.islice(batches, first_batch + host['step'], None)
  step, seconds, done = host['step'], host['seconds'], host['done']
  with StopSignal() as stop:
    while not (done or stop.requested):
      started = time.perf_counter()
      rows = pair_rows(prompts, next(batches), config.max_response_tokens)
      metrics = trainer.step(rows)
      # Waiting here keeps the clock honest; the step is the whole work.
      nll = float(metrics['train/nll'])
      seconds += time.perf_counter() - started
      step += 1
      done = step >= config.max_steps or seconds >= config.max_seconds
      if step % config.evaluate_every and not (done or stop.requested):
        continue
      found = evaluate(trainer.params)
      done = done or found['pass_at_1'] >= config.stop_accuracy
      row = writer.log(
        step,
        {
          'train/nll': nll,
          'train/grad_norm': metrics['train/grad_norm'],
          'time/train_seconds': seconds,
          **{f'evaluation/{k}': v for k, v in found.items()},
        },
      )
      logging.info(
        'supervised step %d, %.0f s: nll %.3f, greedy accuracy %.3f',
        step,
        seconds,
        nll,
        found['pass_at_1'],
      )
      saver.save(
        step,
        trainer.state,
        {
          'step': step,
          'seconds': seconds,
          'done': done,
          'row': row,
          'offsets': writer.offsets(),
        },
      )
  saver.close()
  writer.close()
  stop.exit_if_requested()
  return row
