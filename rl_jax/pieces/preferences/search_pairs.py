"""MCTS-DPO's pairs of steps, and its link by how sure they are."""

import jax
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import links
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Link, Pairs
from rl_jax.types import Array, Edges

ls = jax.nn.log_sigmoid


@piece
class SearchPairs(Pairs):
  """The steps that a search (rollouts.wrappers.TreeSearch) prefers to others.

  confidence_NE is 1 / (1 + N_lose / max(1, N_win)), by visits, for
  ConfidentSigmoid; margins are 0, and rewards do not count.
  Source: YuxiXie/MCTS-DPO (by a digest).
  """

  gives = links.CONFIDENCE
  min_group_size = 2
  reads = {
    'search_pair_B': 'k > 0: the better row of pair k, -k: its worse one; or 0',
    'confidence_B': 'how sure the better row is better, from 1/2 to 1',
  }

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G edges: one for each row, of weight 0 unless it is a better one."""
    traj = ctx.traj
    pair_NG, confidence_NG = (
      by_group(row_inputs.read(traj, key, text), traj.group_size)
      for key, text in self.reads.items()
    )
    rival_NGG = pair_NG[:, :, None] == -pair_NG[:, None]
    rival_NGG &= pair_NG[:, :, None] > 0
    sample_G = jnp.arange(traj.group_size, dtype=jnp.int32)
    return CreditOut(
      Edges(
        win_NE=jnp.broadcast_to(sample_G, pair_NG.shape),
        lose_NE=rival_NGG.argmax(2).astype(jnp.int32),
        weight_NE=rival_NGG.any(2).astype(jnp.float32),
        margin_NE=jnp.zeros(pair_NG.shape, jnp.float32),
        confidence_NE=confidence_NG.astype(jnp.float32),
      )
    )


@piece
class ConfidentSigmoid(Link):
  """-(1 - e) ls(d) - e ls(-d), e = min(1 - confidence, 1/2), d = win - lose.

  The confidence of the label is from 1/2 to 1. Smallest at
  d = log((1 - e) / e). Source: YuxiXie/MCTS-DPO, conservative (by a digest).
  """

  margins = links.CONFIDENCE

  def __call__(self, win: Array, lose: Array, confidence: Array) -> Array:
    """[N, E]."""
    d = win - lose
    e = jnp.clip(1.0 - confidence, 0.0, 0.5)
    return -(1.0 - e) * ls(d) - e * ls(-d)
