"""Ada-GRPO (ARM): rare reasoning formats are rewarded more, at first."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, safe_divide, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array


@piece
class FormatRarity(Shaping):
  """R_k * (1 + (n / F_k - 1) (1 + cos(pi t / total_steps)) / 2).

  F_k counts the valid rows of the group with the format of k, n all valid
  rows; t is the number of rollouts seen, the decay stops at total_steps. Reads
  extras['format_id_B']. State: t.
  Source: "ARM: Adaptive Reasoning Model"; TEAM-ARM/ARM core_algos.py.
  """

  # Rollouts; give it the run's iterations.
  total_steps: float = ranged(100.0, 1.0)
  min_group_size = 2

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No rollout has been seen."""
    del num_prompts
    return {'rollouts': jnp.zeros((), jnp.int32)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)
    id_NG = by_group(row_inputs.read(traj, 'format_id_B'), traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    same_NGG = id_NG[:, :, None] == id_NG[:, None, :]
    count_NG = (same_NGG * valid_NG[:, None, :]).sum(2)
    rarity_NG = safe_divide(valid_NG.sum(1, keepdims=True), count_NG)
    done = jnp.minimum(state['rollouts'] / self.total_steps, 1.0)
    decay = 0.5 * (1.0 + jnp.cos(jnp.pi * done))
    factor_NG = 1.0 + jnp.where(valid_NG > 0, rarity_NG - 1.0, 0.0) * decay
    return CreditOut(
      reward_B * ungroup(factor_NG), {'rollouts': state['rollouts'] + 1}
    )
