"""Direct advantage: a group is the candidates for one step of a response."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, safe_divide, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.row_inputs import NO_CUT
from rl_jax.rollouts.wrappers.continuations import Continuations
from rl_jax.rollouts.wrappers.shared_prefix import SharedPrefix
from rl_jax.runtime import processes
from rl_jax.types import Array, Trajectories


@piece
class CandidateSteps(SharedPrefix, Continuations):
  """The rows of a group share the first steps of a response and then continue
  separately.

    s        = the first k steps of a response, k uniform in 0 .. steps - 1
    a_i      = the step with which row i continues from s
    V(s a_i) = mean reward of row i and of `samples` continuations after a_i;
               the reward of row i where the response ends with a_i

  The response that s is taken from is a sample more, with its own draws; its
  steps are in every row as FORCED tokens. Only the tokens of a_i are trained.
  Equal a_i are one candidate, with the mean of their values, in the first row
  that has it; the other rows weigh nothing, as do states with max V - min V <
  min_spread. Steps begin where the task's `segment_start_BT` says so. Fills
  extras 'candidate_B', 'candidate_value_B' and 'candidate_ends_B' for
  credit.CandidateAdvantage and losses.CandidateValue.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text. There candidates
  come from 32 recorded solutions, and means are of 16 continuations.
  """

  samples: int = ranged(3, 1, static=True)
  min_spread: float = ranged(0.1, 0.0)  # of values, in units of the reward

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows with the values of their steps, the round of continuations)."""
    cut_B = processes.read(sampler.run(self._last_tokens, traj))
    more_BM, found = self.rewards_behind(traj, done, sampler, cut_B)
    own_B1 = done.reward_NG.reshape(-1, 1)
    more_BM = np.where(cut_B[:, None] == NO_CUT, own_B1, more_BM)
    reward_BM = np.concatenate([own_B1, more_BM], axis=1)
    known_BM = np.isfinite(reward_BM)
    total_B = np.where(known_BM, reward_BM, 0.0).sum(axis=1)
    with np.errstate(invalid='ignore'):
      value_B = (total_B / known_BM.sum(axis=1)).astype(np.float32)
    return sampler.run(self._with_values, traj, cut_B, value_B), [found]

  def _last_tokens(self, traj: Trajectories) -> Array:
    """Position of the last token of each row's step; NO_CUT: the end of it."""
    start_BT = row_inputs.read(traj, 'segment_start_BT') > 0
    position_1T = jnp.arange(start_BT.shape[1])[None]
    next_BT = start_BT & (position_1T > traj.extras['prefix_B'][:, None])
    next_BT &= position_1T < traj.length_B[:, None]
    last_B = jnp.argmax(next_BT, axis=1).astype(jnp.int32) - 1
    return jnp.where(next_BT.any(axis=1), last_B, NO_CUT)

  def _with_values(
    self, traj: Trajectories, cut_B: Array, value_B: Array
  ) -> Trajectories:
    """Narrows the mask to the candidates and stores their values."""
    T = traj.mask_BT.shape[1]
    inside_BT = jnp.arange(T)[None] <= cut_B[:, None]
    mask_BT = traj.mask_BT * inside_BT
    known_B = (traj.valid_B > 0) & jnp.isfinite(value_B)

    def grouped(x):
      return by_group(x, traj.group_size)

    step_NGT = grouped(jnp.where(mask_BT > 0, traj.response_BT, -1))
    same_NGG = (step_NGT[:, :, None] == step_NGT[:, None]).all(-1)
    same_NGG &= grouped(known_B)[:, None]
    value_NG = grouped(jnp.where(known_B, value_B, 0.0))
    total_NG = (same_NGG * value_NG[:, None]).sum(-1)
    value_NG = safe_divide(total_NG, same_NGG.sum(-1))
    earlier_NG = jnp.tril(same_NGG, -1).any(-1)
    distinct_NG = grouped(known_B) & ~earlier_NG
    high_N = jnp.where(distinct_NG, value_NG, -jnp.inf).max(1)
    low_N = jnp.where(distinct_NG, value_NG, jnp.inf).min(1)
    kept_NG = distinct_NG & (high_N - low_N >= self.min_spread)[:, None]
    return traj.replace(
      mask_BT=mask_BT,
      weight_B=traj.weight_B * ungroup(kept_NG),
      extras={
        **traj.extras,
        'candidate_B': ungroup(distinct_NG).astype(jnp.float32),
        'candidate_ends_B': (cut_B == NO_CUT).astype(jnp.float32),
        'candidate_value_B': ungroup(value_NG),
      },
    )
