"""EMPO: the reward of a sample is how common its answer is."""

import jax.numpy as jnp

from rl_jax.pieces.ops.clusters import cluster_mass, same_answer
from rl_jax.pieces.ops.masking import by_group, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class ClusterFrequency(Shaping):
  """R_k = rows with the answer of k / valid rows; no label is used.

  0 for a response without an answer (they form one cluster and stay in the
  counts), and for the whole group if no two rows agree. Reads
  extras['cluster_id_B']. Replaces the reward.
  Source: "Right Question is Already Half the Answer: Fully Unsupervised LLM
  Reasoning Incentivization" (EMPO); QingyangZhang/EMPO rewards.py.
  """

  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    same_NGG, answered_NG = same_answer(traj, merge_missing=True)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    _, cluster_NG = cluster_mass(valid_NG, same_NGG)
    agree_N1 = same_NGG.sum(2).max(1, keepdims=True) > 1
    return CreditOut(
      ungroup(jnp.where(agree_N1, cluster_NG * answered_NG, 0.0))
    )
