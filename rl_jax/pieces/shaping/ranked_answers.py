"""AEPO (InfiGUI-G1): one response offers several ranked answers."""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class RankedAnswers(Shaping):
  """format + 1 / sqrt(N k) if candidate k of N is the first hit.

  format - 1 / N if none hits, format - 1 for an empty list, -1 for a malformed
  response (or one whose points lie on a line). Reads extras['num_answers_B']
  (below 0: malformed) and extras['hit_rank_B'] (0: none). Replaces the reward.
  Source: "InfiGUI-G1: Advancing GUI Grounding with Adaptive Exploration Policy
  Optimization" (AEPO); InfiXAI/InfiGUI-G1 reward_fn.py.
  """

  format: float = ranged(1.0)  # reward of a well-formed response

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    answers_B = row_inputs.read(traj, 'num_answers_B').astype(jnp.float32)
    rank_B = row_inputs.read(traj, 'hit_rank_B').astype(jnp.float32)
    count_B = jnp.maximum(answers_B, 1.0)
    hit_B = (rank_B > 0) & (answers_B > 0)
    utility_B = jnp.where(
      hit_B,
      jax.lax.rsqrt(count_B * jnp.maximum(rank_B, 1.0)),
      -1.0 / count_B,
    )
    return CreditOut(jnp.where(answers_B < 0, -1.0, self.format + utility_B))
