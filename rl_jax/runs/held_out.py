"""Recorded rows that are not trained: loss, margins, accuracy of pairs."""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rl_jax.data.recorded import LoggedSource
from rl_jax.learning.measure import measure
from rl_jax.learning.update import Batch
from rl_jax.runs.stages import Stages
from rl_jax.runtime import compilation, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import TrainState

# Metrics of losses that mean something off policy and without a step.
SHOWN = ('preference/', 'train/nll', 'value/')


class HeldOut:
  """Metrics of the method's losses on the rows of another split.

  source: of that split; num_prompts rows at most, in batches of the same size,
  as many as the rows fill.
  """

  def __init__(self, source: LoggedSource, stages: Stages, num_prompts: int):
    shards = source.mesh.shape['data'] * source.mesh.shape['fsdp']
    count = min(num_prompts, len(source.prompts))
    self._size = min(source.num_prompts, count // shards * shards)
    if not self._size:
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
    self._source, self._whole = source, mesh_lib.replicated(source.mesh)
    forward = stages.functions.forward
    if self._size % forward.microbatches:
      forward = dataclasses.replace(forward, microbatches=1)
    self._measure = jax.jit(
      functools.partial(measure, forward),
      out_shardings=self._whole,
      compiler_options=compilation.options(forward.model.platform),
    )

  def run(
    self, frozen: Any, state: TrainState, method: Any, key: jax.Array
  ) -> dict[str, float]:
    """Means over the batches, by the names of the training metrics."""
    found = []
    for number in range(self._batches):
      indices = np.arange(self._size) + number * self._size
      traj, _ = self._source.read(indices, 0)
      traj = processes.put(traj, self._whole)
      batch = Batch(frozen=frozen, method=method, traj=traj, key=key)
      found.append(processes.read(self._measure(state, batch)))
    names = [n for n in found[0] if n == 'loss' or n.startswith(SHOWN)]
    return {n: float(np.mean([row[n] for row in found])) for n in names}
