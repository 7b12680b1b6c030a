"""The share of its group that a response beats, by a preference model."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.learning.final_values import final_values
from rl_jax.learning.statistics import Forward
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.types import PAD, POLICY, Array, Trajectories


def preferences(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  separator: tuple[int, ...],
  eos_ids: tuple[int, ...],
  rival_GG: np.ndarray | None = None,
) -> Array:
  """P(row beats row j of its group), [B, G]; 1/2 where j is not a rival.

    P(a beats b | x) = sigmoid(V(x, a, b) - V(x, b, a))

  V is the value head after the last token of both responses in one row, in
  the order of tasks.JoinedPairs: tokens of a without its end token, separator,
  tokens of b. rival_GG: the symmetric pairs that are read; None: all.
  """
  G = traj.group_size
  asked_GG = np.ones((G, G), bool) if rival_GG is None else rival_GG
  first_E, second_E = np.nonzero(asked_GG)
  rows = joined(traj, separator, eos_ids, (first_E, second_E))
  value_B = final_values(forward, params, rows)
  value_NE = value_B.reshape(-1, len(first_E))
  value_NGG = jnp.zeros((value_NE.shape[0], G, G), value_NE.dtype)
  value_NGG = value_NGG.at[:, first_E, second_E].set(value_NE)
  beats_NGG = jax.nn.sigmoid(value_NGG - value_NGG.swapaxes(1, 2))
  return beats_NGG.reshape(-1, G)


def mean_wins(
  beats_BG: Array, traj: Trajectories, rival_GG: np.ndarray | None = None
) -> Array:
  """Mean of beats_BG over the valid rivals of each row, [B]; 0.5 without one.

  rival_GG: None: the other rows of the group.
  """
  G = traj.group_size
  beats_NGG = beats_BG.reshape(-1, G, G)
  others_GG = ~np.eye(G, dtype=bool)
  if rival_GG is not None:
    others_GG &= rival_GG
  counted_NGG = by_group(traj.valid_B, G)[:, None] * others_GG[None]
  counted_NGG = jnp.broadcast_to(counted_NGG, beats_NGG.shape)
  return 0.5 + masked_mean(beats_NGG - 0.5, counted_NGG, axis=2).reshape(-1)


def win_rates(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  separator: tuple[int, ...],
  eos_ids: tuple[int, ...],
) -> Array:
  """Mean over the other valid rows b of P(a beats b), [B]; 0.5 without one.

  forward: of the G x G rows of each group.
  """
  beats_BG = preferences(forward, params, traj, separator, eos_ids)
  return mean_wins(beats_BG, traj)


def joined(
  traj: Trajectories,
  separator: tuple[int, ...],
  eos_ids: tuple[int, ...],
  pairs: tuple[np.ndarray, np.ndarray] | None = None,
) -> Trajectories:
  """Rows of pairs of a group, [N, E]: row e holds response i_e, then j_e.

  pairs: the samples (i [E], j [E]); None: all G x G, by i, then by j.
  """
  G, (B, T), S = traj.group_size, traj.response_BT.shape, len(separator)
  i_E, j_E = np.nonzero(np.ones((G, G), bool)) if pairs is None else pairs
  row_B = np.arange(B).reshape(-1, G)
  first, second = row_B[:, i_E].reshape(-1), row_B[:, j_E].reshape(-1)
  last_B1 = jnp.maximum(traj.length_B[:, None] - 1, 0)
  last_B1 = jnp.take_along_axis(traj.response_BT, last_B1, axis=1)
  ends_B = jnp.isin(last_B1[:, 0], np.array(eos_ids)) & (traj.length_B > 0)
  size_B = traj.length_B - ends_B.astype(jnp.int32)
  start_B1 = size_B[first][:, None]  # of the separator
  place_T = jnp.arange(2 * T + S)[None]

  def pick(rows: np.ndarray, place: Array):
    return jnp.take_along_axis(
      traj.response_BT[rows], jnp.clip(place, 0, T - 1), axis=1
    )

  between = jnp.asarray((*separator, 0), jnp.int32)[
    jnp.clip(place_T - start_B1, 0, S)
  ]
  after = place_T - start_B1 - S
  response_BT = jnp.where(
    place_T < start_B1,
    pick(first, jnp.broadcast_to(place_T, after.shape)),
    jnp.where(after < 0, between, pick(second, after)),
  )
  length_B = start_B1[:, 0] + S + traj.length_B[second]
  written_BT = place_T < length_B[:, None]
  return traj.replace(
    group_size=len(i_E),
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
    target_BT=None,
    inputs_BTF=None,
    turns=None,
  )
