"""How often a response beats the others of its group, by a preference model."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.learning.final_values import final_values
from rl_jax.learning.statistics import Forward
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.types import PAD, POLICY, Array, Trajectories


def win_rates(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  separator: tuple[int, ...],
  eos_ids: tuple[int, ...],
) -> Array:
  """Mean over the other valid rows b of P(a beats b), [B]; 0.5 without one.

    P(a beats b | x) = sigmoid(V(x, a, b) - V(x, b, a))

  V is the value head behind the last token of both responses in one row, in
  the order of tasks.JoinedPairs: tokens of a without its end token, separator,
  tokens of b. forward: of the G x G rows of each group.
  """
  G = traj.group_size
  value_B = final_values(forward, params, joined(traj, separator, eos_ids))
  value_NGG = value_B.reshape(-1, G, G)
  beats_NGG = jax.nn.sigmoid(value_NGG - value_NGG.swapaxes(1, 2))
  other_NGG = by_group(traj.valid_B, G)[:, None] * (1.0 - np.eye(G)[None])
  other_NGG = jnp.broadcast_to(other_NGG, beats_NGG.shape)
  return 0.5 + masked_mean(beats_NGG - 0.5, other_NGG, axis=2).reshape(-1)


def joined(
  traj: Trajectories, separator: tuple[int, ...], eos_ids: tuple[int, ...]
) -> Trajectories:
  """Rows [N, G, G] of a group: row (i, j) holds response i, then response j."""
  G, (B, T), S = traj.group_size, traj.response_BT.shape, len(separator)
  row_B = np.arange(B).reshape(-1, G)
  first, second = (
    np.repeat(row_B, G, axis=1).reshape(-1),
    np.tile(row_B, (1, G)).reshape(-1),
  )
  last_B1 = jnp.maximum(traj.length_B[:, None] - 1, 0)
  last_B1 = jnp.take_along_axis(traj.response_BT, last_B1, axis=1)
  ends_B = jnp.isin(last_B1[:, 0], np.array(eos_ids)) & (traj.length_B > 0)
  size_B = traj.length_B - ends_B.astype(jnp.int32)
  start_B1 = size_B[first][:, None]  # of the separator
  place_T = jnp.arange(2 * T + S)[None]
  pick = lambda rows, place: jnp.take_along_axis(
    traj.response_BT[rows], jnp.clip(place, 0, T - 1), axis=1
  )
  between = jnp.asarray((*separator, 0), jnp.int32)[
    jnp.clip(place_T - start_B1, 0, S)
  ]
  behind = place_T - start_B1 - S
  response_BT = jnp.where(
    place_T < start_B1,
    pick(first, jnp.broadcast_to(place_T, behind.shape)),
    jnp.where(behind < 0, between, pick(second, behind)),
  )
  length_B = start_B1[:, 0] + S + traj.length_B[second]
  written_BT = place_T < length_B[:, None]
  return traj.replace(
    group_size=G * G,
    response_BT=jnp.where(written_BT, response_BT, 0),
    kind_BT=jnp.where(written_BT, POLICY, PAD).astype(jnp.int32),
    mask_BT=written_BT.astype(jnp.float32),
    length_B=length_B,
    finished_B=traj.finished_B[first],
    row_id_B2=traj.row_id_B2[first],
    policy_version_B=traj.policy_version_B[first],
    valid_B=traj.valid_B[first],
    weight_B=traj.weight_B[first],
    logp_behaviour_BT=jnp.zeros(written_BT.shape),
    turn_BT=None,
    context_BT=None,
    turns=None,
  )
