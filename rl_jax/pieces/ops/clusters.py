"""Groups of equivalent answers inside the samples of one prompt."""

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, safe_divide
from rl_jax.types import Array, Trajectories


def same_answer(
  traj: Trajectories, *, merge_missing: bool
) -> tuple[Array, Array]:
  """(1 where two valid rows of a group agree, 1 where a row has an answer).

  Shapes [N, G, G] and [N, G]. Rows without an answer (cluster_id_B below 0)
  form one cluster if merge_missing, else each its own.
  """
  id_NG = by_group(row_inputs.read(traj, 'cluster_id_B'), traj.group_size)
  valid_NG = by_group(traj.valid_B, traj.group_size) > 0
  answered_NG = valid_NG & (id_NG >= 0)
  equal_NGG = id_NG[:, :, None] == id_NG[:, None, :]
  missing_NGG = ~(answered_NG[:, :, None] | answered_NG[:, None, :])
  both_NGG = answered_NG[:, :, None] & answered_NG[:, None, :]
  if not merge_missing:
    missing_NGG &= jnp.eye(traj.group_size, dtype=bool)[None]
  same_NGG = (equal_NGG & both_NGG) | missing_NGG
  same_NGG &= valid_NG[:, :, None] & valid_NG[:, None, :]
  return same_NGG.astype(jnp.float32), answered_NG.astype(jnp.float32)


def cluster_mass(mass_NG: Array, same_NGG: Array) -> tuple[Array, Array]:
  """(mass of the row, mass of its cluster), both as shares of the group.

  mass_NG >= 0 must be 0 on invalid rows; uniform masses give counts.
  """
  share_NG = safe_divide(mass_NG, mass_NG.sum(1, keepdims=True))
  return share_NG, (same_NGG * share_NG[:, None, :]).sum(2)


def answer_entropy(share_NG: Array, cluster_NG: Array) -> Array:
  """-sum_j P(C_j) log P(C_j) = -sum_k share_k log P(C of k), nats, [N]."""
  log_NG = jnp.log(jnp.where(cluster_NG > 0, cluster_NG, 1.0))
  return -(share_NG * log_NG).sum(1)
