"""What a step adds to the critic's value: advantages of steps."""

from typing import ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen
from rl_jax.pieces.ops.segments import SOURCES, segment_means, segment_starts
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


@piece
class StepAdvantage:
  """A = V(state behind the step) - V(state before it), on all its tokens.

  The reward takes the place of the value behind the last step. V is the value
  head at the first token of a step: that token is chosen in the state before.
  Steps are turns, or begin where extras['segment_start_BT'] says so.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text. There the mean
  value behind several candidates for the step is taken off; V before it is what
  that mean estimates.
  """

  segments: str = chosen('turns', SOURCES)
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def __call__(self, credit_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B, T]."""
    chex.assert_rank(credit_B, 1)
    start_BT = segment_starts(traj, self.segments)
    first_BT = jnp.where(start_BT, traj.values_BT, 0.0)
    mean_BS, tokens_BS, index_BT = segment_means(
      first_BT, start_BT, traj.mask_BT
    )
    before_BS = mean_BS * tokens_BS  # one token of each step has a value
    behind_BS = jnp.pad(before_BS[:, 1:], ((0, 0), (0, 1)))
    more_BS = jnp.pad(tokens_BS[:, 1:] > 0, ((0, 0), (0, 1)))
    behind_BS = jnp.where(more_BS, behind_BS, credit_B[:, None])
    advantage_BT = jnp.take_along_axis(behind_BS - before_BS, index_BT, axis=1)
    return jnp.where(traj.mask_BT > 0, advantage_BT, 0.0)
