"""The effect of a step on a token on the right responses, for THR and NTHR."""

import chex
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  safe_divide,
  ungroup,
)
from rl_jax.types import Array, Trajectories


def influence(traj: Trajectories, right_B: Array) -> Array:
  """s_jk: how a step on token k of row j moves the right rows, [B, T].

    g = onehot(y) - p, over the distinct response tokens of the group
    M = sum over tokens of right rows of g h'
    s_jk = g_jk' M h_jk

  The inner products of gradients of the output layer; p is not renormalised.
  Reads extras 'hidden' [B, T, D] and 'group_probs' [B, T, G T] of the sampling
  policy; needs memory for the latter and for [N, G T, D].
  """
  N = traj.num_prompts

  def by_tokens(x: Array):
    return x.reshape(N, -1, *x.shape[2:])  # [N, K = G T, ...]

  token_NK, mask_NK = by_tokens(traj.response_BT), by_tokens(traj.mask_BT)
  # A token that occurs twice must count once: its first occurrence is kept.
  same_NKK = (token_NK[:, :, None] == token_NK[:, None, :]) & (
    mask_NK[:, None, :] > 0
  )
  earlier_KK = jnp.tri(token_NK.shape[1], k=-1, dtype=bool)[None]
  first_NU = (mask_NK > 0) & ~(same_NKK & earlier_KK).any(axis=2)
  probs_NKU = by_tokens(row_inputs.read(traj, 'group_probs'))
  hidden_NKD = by_tokens(row_inputs.read(traj, 'hidden'))
  chex.assert_equal_shape([probs_NKU, same_NKK])
  g_NKU = (same_NKK - probs_NKU) * first_NU[:, None, :]
  right_NK = by_tokens(right_B[:, None] * traj.mask_BT)
  moment_NUD = jnp.einsum('nk,nku,nkd->nud', right_NK, g_NKU, hidden_NKD)
  s_NK = jnp.einsum('nku,nud,nkd->nk', g_NKU, moment_NUD, hidden_NKD)
  return s_NK.reshape(traj.mask_BT.shape) * traj.mask_BT


def mixed(traj: Trajectories, above: float) -> tuple[Array, Array, Array]:
  """(right_B, wrong_B, share of right rows p_B); p is 0 in unmixed groups."""
  right_B = row_inputs.right_B(traj, above).astype(jnp.float32)
  wrong_B = traj.valid_B * (1.0 - right_B)
  right_NG = by_group(right_B, traj.group_size)
  valid_NG = by_group(traj.valid_B, traj.group_size)
  share_N1 = safe_divide(
    right_NG.sum(1, keepdims=True), valid_NG.sum(1, keepdims=True)
  )
  share_N1 = jnp.where(share_N1 < 1, share_N1, 0.0)
  share_NG = jnp.broadcast_to(share_N1, valid_NG.shape)
  return right_B, wrong_B, ungroup(share_NG)


def threshold(s_BT: Array, right_B: Array, traj: Trajectories) -> Array:
  """min over right rows of their mean s, for every row of the group, [B]."""
  mean_B = masked_mean(s_BT, traj.mask_BT, axis=1)
  mean_NG = by_group(jnp.where(right_B > 0, mean_B, jnp.inf), traj.group_size)
  low_N1 = mean_NG.min(axis=1, keepdims=True)
  return ungroup(jnp.broadcast_to(low_N1, mean_NG.shape))
