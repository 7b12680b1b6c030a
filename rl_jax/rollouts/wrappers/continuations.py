"""Continuations of rows from inside a response, for wrappers that value it."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.pieces.row_inputs import NO_CUT
from rl_jax.types import PAD, Array, Trajectories


class Continuations(RolloutWrapper):
  """Base of the rollout pieces that continue from a token of a row."""

  reads_rewards = True

  @property
  def samples(self) -> int:
    """Continuations of each row, a field of the piece."""
    raise NotImplementedError

  @property
  def continues(self) -> int:
    """Rows of a call for each of the rollout, for the memory plan."""
    return self.samples

  def rewards_behind(
    self, traj: Trajectories, done: Any, sampler: Any, cut_B: Any
  ) -> tuple[np.ndarray, Any]:
    """(rewards [B, samples] of continuations after token cut, their round).

    A row with NO_CUT has its own response each time. NaN: not verified.
    """
    serial = np.int32(sampler.next_serial)
    starts = sampler.run(self.branches, traj, cut_B, serial)
    found = sampler.go_on(starts, done)
    return found.reward_NG.reshape(-1, self.samples), found

  def branches(
    self, traj: Trajectories, cut_B: Array, first_serial: Array
  ) -> Trajectories:
    """`samples` unfinished copies of each row, tokens up to the cut kept.

    Rows without a cut stay whole and finished. New serials make the draws new.
    """

    def repeat(x):
      return jnp.repeat(x, self.samples, axis=0)

    N, T = traj.num_prompts, traj.response_BT.shape[1]
    size = traj.group_size * self.samples
    none_B = repeat(cut_B == NO_CUT)
    length_B = jnp.where(none_B, repeat(traj.length_B), repeat(cut_B + 1))
    keep_BT = jnp.arange(T)[None] < length_B[:, None]
    serial_N = first_serial + jnp.arange(N, dtype=jnp.int32)
    sample_G = jnp.arange(size, dtype=jnp.int32)
    ones_B = jnp.ones_like(repeat(traj.weight_B))
    return traj.replace(
      group_size=size,
      response_BT=jnp.where(keep_BT, repeat(traj.response_BT), 0),
      kind_BT=jnp.where(keep_BT, repeat(traj.kind_BT), PAD),
      length_B=length_B,
      finished_B=none_B,
      row_id_B2=jnp.stack(
        [jnp.repeat(serial_N, size), jnp.tile(sample_G, N)], axis=1
      ),
      policy_version_B=repeat(traj.policy_version_B),
      mask_BT=jnp.zeros_like(keep_BT, jnp.float32),
      logp_behaviour_BT=jnp.where(keep_BT, repeat(traj.logp_behaviour_BT), 0.0),
      valid_B=ones_B,
      weight_B=ones_B,
      reward_B=None,
      rewards={},
      extras={},
    )
