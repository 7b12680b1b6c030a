"""Groups whose first samples begin in given modes."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.forced import begin_with
from rl_jax.types import Array, Trajectories


@piece
class ForcedModes(RolloutWrapper):
  """`samples` rows of each mode of the task, then free rows, in every group.

  A mode is a text with which responses begin (`modes` of the task). Its tokens
  are part of the response that is judged and have kind FORCED: the policy did
  not choose them, so no loss trains them. What follows is sampled. Free rows
  draw what they would draw without forced ones. Fills extras 'forced_B'.
  Source: "A2FM: An Adaptive Agent Foundation Model for Tool-Aware Hybrid
  Reasoning", from notes: rho rollouts in every mode and gamma free ones, the
  prefix masked. Their numbers are not known; 2 is a choice of this code.
  """

  samples: int = ranged(2, 1, static=True)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task has no modes, or too many for a group."""
    task, rollout = context.task, context.rollout
    if rollout is None:
      return
    name, modes = type(task).__name__, task.traits.modes
    if not modes:
      raise ValueError(
        f'method.rollout: ForcedModes needs a task with modes, but {name} has '
        'none: for example Chain(controls=True)'
      )
    forced = self.samples * len(modes)
    if forced > rollout.group_size:
      raise ValueError(
        f'method.rollout: ForcedModes.samples = {self.samples} in each of '
        f'{len(modes)} modes of {name} are {forced} rows, more than '
        f'rollout.group_size = {rollout.group_size}'
      )

  def begin(self, traj: Trajectories, sampler: Any) -> Trajectories:
    """Writes the beginnings into empty rows.

    Raises: ValueError if one fills a response.
    """
    encode = sampler.tokenizer.encode
    modes = sampler.task.traits.modes
    ids = {name: encode(text, control=True) for name, text in modes.items()}
    limit = traj.response_BT.shape[1]
    for name, tokens in ids.items():
      if not 0 < len(tokens) < limit:
        raise ValueError(
          f'method.rollout: the beginning {modes[name]!r} of mode {name!r} has '
          f'{len(tokens)} tokens; at least 1 are needed, and fewer than '
          f'rollout.max_response_tokens = {limit}'
        )
    begun_MT = np.zeros((len(ids), limit), np.int32)
    for row_T, tokens in zip(begun_MT, ids.values(), strict=True):
      row_T[: len(tokens)] = tokens
    length_M = np.asarray([len(tokens) for tokens in ids.values()], np.int32)
    return sampler.run_rows(self._begun, traj, begun_MT, length_M)

  def _begun(
    self, traj: Trajectories, begun_MT: Array, length_M: Array
  ) -> Trajectories:
    """Rows with the beginnings of M modes, `samples` of each in a group."""
    forced = len(length_M) * self.samples
    free = traj.group_size - forced

    def per_row(x):
      return jnp.repeat(x, self.samples, axis=0)

    def fill(x):
      return jnp.pad(x, [(0, free)] + [(0, 0)] * (x.ndim - 1))

    def every(x):
      return jnp.concatenate([fill(per_row(x))] * traj.num_prompts)

    length_B = every(length_M)
    forced_B = (length_B > 0).astype(jnp.float32)
    begun = begin_with(traj, every(begun_MT), length_B)
    return begun.replace(extras={**traj.extras, 'forced_B': forced_B})
