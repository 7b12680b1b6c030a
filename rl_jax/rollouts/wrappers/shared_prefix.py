"""Groups that continue from the first steps of one response."""

from typing import Any

import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.types import FORCED, PAD, Array, Trajectories


class SharedPrefix(RolloutWrapper):
  """The base of rollout pieces whose groups begin with the same steps.

  The response that the steps are taken from is one sample more of the group,
  with its own draws, and is not kept. Fills extras 'prefix_B', their tokens.
  """

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task marks no steps."""
    name, task = type(self).__name__, context.task
    if task is not None and not task.supports('row_inputs_device'):
      raise ValueError(
        f'method.rollout: {name} needs a task that marks steps, but '
        f'{type(task).__name__} has no method `row_inputs_device`'
      )

  def begin(self, traj: Trajectories, sampler: Any) -> Trajectories:
    """Rows with the steps that their group shares.

    Raises: ValueError if the task says other things of tokens than steps.
    """
    if 'segment_start_BT' not in sampler.row_inputs(traj):
      raise ValueError(
        f'method.rollout: {type(self).__name__} needs a task that marks steps, '
        f'but the row_inputs_device of {type(sampler.task).__name__} gives no '
        "'segment_start_BT'"
      )
    written = sampler.run_rows(self.with_writer, traj)
    written = sampler.write(written, traj.response_BT.shape[1])
    start_BT = sampler.row_inputs(written)['segment_start_BT']
    return sampler.run_rows(self.behind_prefix, written, start_BT, sampler.key)

  def with_writer(self, traj: Trajectories) -> Trajectories:
    """The first row of each group is sample G; the others wait."""
    sample_B = traj.row_id_B2[:, 1]
    writer_B = sample_B == 0
    sample_B = jnp.where(writer_B, traj.group_size, sample_B)
    return traj.replace(
      row_id_B2=traj.row_id_B2.at[:, 1].set(sample_B),
      finished_B=traj.finished_B | ~writer_B,
    )

  def behind_prefix(
    self, traj: Trajectories, start_BT: Array, key: Array
  ) -> Trajectories:
    """All rows with the first steps of what sample G has written."""
    G, T = traj.group_size, traj.response_BT.shape[1]
    behind_B = jnp.arange(len(start_BT)) % G
    writer_B = jnp.arange(len(start_BT)) - behind_B
    position_1T = jnp.arange(T)[None]
    written_BT = position_1T < traj.length_B[writer_B][:, None]
    start_BT = (start_BT[writer_B] > 0) & written_BT
    step_BT = jnp.cumsum(start_BT.at[:, 0].set(True), axis=1)
    cut_key = randomness.purpose_key(key, randomness.CUTS)
    keys_B = randomness.row_keys(cut_key, traj.row_id_B2[writer_B])
    uniform_B = randomness.token_uniform(keys_B, jnp.zeros_like(behind_B))
    steps_B = step_BT[:, -1]
    kept_B = jnp.minimum((uniform_B * steps_B).astype(jnp.int32), steps_B - 1)
    prefix_BT = step_BT <= kept_B[:, None]
    return traj.replace(
      response_BT=jnp.where(prefix_BT, traj.response_BT[writer_B], 0),
      kind_BT=jnp.where(prefix_BT, FORCED, PAD),
      logp_behaviour_BT=jnp.zeros_like(traj.logp_behaviour_BT),
      mask_BT=jnp.zeros_like(traj.mask_BT),
      length_B=prefix_BT.sum(1, dtype=jnp.int32),
      finished_B=jnp.zeros_like(traj.finished_B),
      row_id_B2=traj.row_id_B2.at[:, 1].set(behind_B),
      extras={'prefix_B': prefix_BT.sum(1, dtype=jnp.int32)},
    )
