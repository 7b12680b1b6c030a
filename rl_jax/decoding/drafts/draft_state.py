"""Speculative decoding in a run: the jitted call, its memory and its counts."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rl_jax.decoding.drafts import draft_memory
from rl_jax.decoding.drafts.generate_with_drafts import Kept
from rl_jax.decoding.drafts.settings import Drafts, PreviousResponses
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import Metrics, Trajectories


class DraftState(Stateful):
  """What the calls of an engine and its variants share; empty without drafts.

  memory: on the device, replicated; {} where no responses are kept.
  model_params: of a draft model, or None.
  """

  name: ClassVar[str] = 'drafts'

  def __init__(
    self,
    drafts: Drafts | None,
    max_tokens: int,
    mesh: jax.sharding.Mesh,
    model_params: Any = None,
  ):
    self.model_params = model_params
    self.memory: draft_memory.Memory = {}
    self._counts: list[jax.Array] = []
    if isinstance(drafts, PreviousResponses):
      arrays = draft_memory.empty(drafts.prompts, max_tokens)
      self.memory = processes.put(arrays, mesh_lib.replicated(mesh))

  def arrays(self) -> dict[str, Any]:
    """The memory, if there is one."""
    return {'drafts': self.memory} if self.memory else {}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    del host
    self.memory = arrays.get('drafts', self.memory)

  def kept(self) -> Kept:
    """The arrays of a call."""
    return Kept(self.memory, self.model_params)

  def count(self, counts_3: jax.Array) -> None:
    """Adds the counts of one call, see generate_with_drafts."""
    self._counts.append(counts_3)

  def metrics(self) -> Metrics:
    """Since the last call, means over the forward passes of rows.

    accepted_length: tokens that one added; drafted_length: drafted for it.
    """
    counts, self._counts = tuple(self._counts), []
    return _means(counts) if counts else {}


@jax.jit
def _means(counts):
  passes, tokens, drafted = jnp.stack(counts).sum(axis=0)
  passes = jnp.maximum(passes, 1)
  return {
    'rollout/accepted_length': tokens / passes,
    'rollout/drafted_length': drafted / passes,
  }


class GenerateWithDrafts:
  """The `generate` of an Engine with drafts; jitted: generate_with_drafts."""

  def __init__(self, jitted: Any, state: DraftState):
    self._jitted, self._state = jitted, state

  def __call__(
    self, params: Any, *, traj: Trajectories, key: jax.Array
  ) -> Trajectories:
    """Rows with their responses; counts and remembers."""
    traj, memory, counts_3 = self._jitted(
      params, traj=traj, key=key, kept=self._state.kept()
    )
    self._state.memory = memory
    self._state.count(counts_3)
    return traj

  def lower(self, params: Any, **arguments: Any) -> jax.stages.Lowered:
    """Of the jitted function, whose first result are the rows."""
    kept = self._state.kept()
    return self._jitted.lower(params, **arguments, kept=kept)
