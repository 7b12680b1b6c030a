"""Recorded rows that are not trained: loss, margins, accuracy of pairs."""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rl_jax.data.recorded import RecordedSource
from rl_jax.learning import objective as objective_lib
from rl_jax.learning import score as score_lib
from rl_jax.learning import statistics as statistics_lib
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward
from rl_jax.learning.update import Batch
from rl_jax.method import LOSS_SLOTS
from rl_jax.runs.stages import Stages
from rl_jax.runtime import compilation, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import LEARNED, Metrics, TrainState


def measure(forward: Forward, state: TrainState, batch: Batch) -> Metrics:
  """The loss of the whole batch as `loss`, and the metrics of its pieces."""
  method, params = batch.method, {**batch.frozen, **state.params}
  traj, _ = score_lib.score(forward, params, batch.traj, method)
  needs = statistics_lib.model_needs(method, LOSS_SLOTS)
  stats = score_lib.scored_statistics(traj, needs | {statistics_lib.LOGP})
  traj, states, _ = make_batch(method, traj, state.method_state)
  learned = state.params.get(LEARNED, {})
  loss, metrics, _ = objective_lib.terms(
    method, stats, traj, batch.key, states, learned
  )
  return {**objective_lib.reduce_metrics(metrics, traj), 'loss': loss}


# Metrics of losses that mean something off policy and without a step.
SHOWN = ('preference/', 'train/nll', 'value/')


def batch_size(rows: int, most: int, mesh: jax.sharding.Mesh) -> int:
  """The rows of a batch: as many of `rows` as devices share evenly, up to most.

  0: there are too few.
  """
  shards = mesh.shape['data'] * mesh.shape['fsdp']
  return min(most, rows // shards * shards)


def program(stages: Stages, size: int) -> Any:
  """The jitted `measure` of batches of that size: (state, batch) -> metrics."""
  forward = stages.functions.forward
  if size % forward.microbatches:
    forward = dataclasses.replace(forward, microbatches=1)
  return jax.jit(
    functools.partial(measure, forward),
    out_shardings=mesh_lib.replicated(stages.engine.mesh),
    compiler_options=compilation.options(forward.model.platform),
  )


class HeldOut:
  """Metrics of the method's losses on the rows of another split.

  source: of that split; num_prompts rows at most, in batches of the same size,
  as many as the rows fill.
  """

  def __init__(self, source: RecordedSource, stages: Stages, num_prompts: int):
    count = min(num_prompts, len(source.prompts))
    self._size = batch_size(count, source.num_prompts, source.mesh)
    if not self._size:
      shards = source.mesh.shape['data'] * source.mesh.shape['fsdp']
      raise ValueError(
        f'evaluation: {count} recorded rows of the split '
        f'{source.prompts.split!r} do not fill {shards} devices'
      )
    if source.mismatched and self._size < 2:
      raise ValueError(
        'evaluation.num_prompts: one recorded row, and the method reads the '
        'response to another prompt: it needs two'
      )
    self._batches = count // self._size
    self._source, self._replicated = source, mesh_lib.replicated(source.mesh)
    self._measure = program(stages, self._size)

  def run(
    self, frozen: Any, state: TrainState, method: Any, key: jax.Array
  ) -> dict[str, float]:
    """Means over the batches, by the names of the training metrics."""
    found = []
    for number in range(self._batches):
      indices = np.arange(self._size) + number * self._size
      traj, _ = self._source.read(indices, 0)
      traj = processes.put(traj, self._replicated)
      batch = Batch(frozen=frozen, method=method, traj=traj, key=key)
      found.append(processes.read(self._measure(state, batch)))
    names = [n for n in found[0] if n == 'loss' or n.startswith(SHOWN)]
    return {n: float(np.mean([row[n] for row in found])) for n in names}
