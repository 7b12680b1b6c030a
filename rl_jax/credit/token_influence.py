"""THR and NTHR: tokens weighed by what they do to the right responses."""

from typing import ClassVar

import chex
from flax import struct
import jax.numpy as jnp

from rl_jax import extras
from rl_jax.masking import by_group, masked_mean, safe_divide, ungroup
from rl_jax.types import Array, Trajectories, check_range


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
  by_tokens = lambda x: x.reshape(N, -1, *x.shape[2:])  # [N, K = G T, ...]
  token_NK, mask_NK = by_tokens(traj.response_BT), by_tokens(traj.mask_BT)
  # A token that occurs twice must count once: its first occurrence stands.
  same_NKK = (token_NK[:, :, None] == token_NK[:, None, :]) & (
    mask_NK[:, None, :] > 0
  )
  earlier_KK = jnp.tri(token_NK.shape[1], k=-1, dtype=bool)[None]
  first_NU = (mask_NK > 0) & ~(same_NKK & earlier_KK).any(axis=2)
  probs_NKU = by_tokens(extras.read(traj, 'group_probs'))
  hidden_NKD = by_tokens(extras.read(traj, 'hidden'))
  chex.assert_equal_shape([probs_NKU, same_NKK])
  g_NKU = (same_NKK - probs_NKU) * first_NU[:, None, :]
  right_NK = by_tokens(right_B[:, None] * traj.mask_BT)
  moment_NUD = jnp.einsum('nk,nku,nkd->nud', right_NK, g_NKU, hidden_NKD)
  s_NK = jnp.einsum('nku,nud,nkd->nk', g_NKU, moment_NUD, hidden_NKD)
  return s_NK.reshape(traj.mask_BT.shape) * traj.mask_BT


def _mixed(traj: Trajectories, above: float) -> tuple[Array, Array, Array]:
  """(right_B, wrong_B, share of right rows p_B); p is 0 in unmixed groups."""
  right_B = traj.valid_B * (traj.reward_B > above)
  wrong_B = traj.valid_B * (traj.reward_B <= above)
  right_NG = by_group(right_B, traj.group_size)
  valid_NG = by_group(traj.valid_B, traj.group_size)
  share_N1 = safe_divide(
    right_NG.sum(1, keepdims=True), valid_NG.sum(1, keepdims=True)
  )
  share_N1 = jnp.where(share_N1 < 1, share_N1, 0.0)
  share_NG = jnp.broadcast_to(share_N1, valid_NG.shape)
  return right_B, wrong_B, ungroup(share_NG)


def _threshold(s_BT: Array, right_B: Array, traj: Trajectories) -> Array:
  """min over right rows of their mean s, for every row of the group, [B]."""
  mean_B = masked_mean(s_BT, traj.mask_BT, axis=1)
  mean_NG = by_group(jnp.where(right_B > 0, mean_B, jnp.inf), traj.group_size)
  low_N1 = mean_NG.min(axis=1, keepdims=True)
  return ungroup(jnp.broadcast_to(low_N1, mean_NG.shape))


@struct.dataclass(kw_only=True)
class TokenHiddenReward:
  """A_jk (1 + direction sign(THR_jk)) where |THR_jk| > tau, else 0.

    THR_jk = s_jk in right rows, -s_jk in wrong ones (see `influence`)
    tau = beta min over right rows of mean_k |s|

  No gradient. Groups without right or without wrong rows keep A. direction > 0
  favours greedy accuracy, < 0 exploration; 0 trains the dominant tokens alone.
  Right: unshaped reward above `correct_above`.
  Source: "Token Hidden Reward" from public reviews; the rule is reconstructed,
  and so are tau (the heuristic of NTHR) and the values of direction.
  Raises ValueError for |direction| > 1 or a negative beta.
  """

  direction: float = 0.1  # in [-1, 1]
  beta: float = 1.0  # >= 0
  correct_above: float = 0.5  # in units of the reward
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('hidden', 'group_probs')
  min_group_size: ClassVar[int] = 2

  def __post_init__(self):
    check_range(self, 'direction', -1.0, 1.0)
    check_range(self, 'beta', 0.0)

  def __call__(self, credit_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B, T]."""
    chex.assert_rank(credit_B, 1)
    right_B, _, share_B = _mixed(traj, self.correct_above)
    s_BT = influence(traj, right_B)
    tau_B = self.beta * _threshold(jnp.abs(s_BT), right_B, traj)
    sign_BT = jnp.sign(s_BT) * jnp.where(right_B > 0, 1.0, -1.0)[:, None]
    factor_BT = jnp.where(
      jnp.abs(s_BT) > tau_B[:, None], 1.0 + self.direction * sign_BT, 0.0
    )
    factor_BT = jnp.where((share_B > 0)[:, None], factor_BT, 1.0)
    return credit_B[:, None] * factor_BT


@struct.dataclass(kw_only=True)
class NegativeTokenDamping:
  """NTHR: A_jk 2 |p - 1/2| on tokens of wrong rows with s_jk > tau, else A_jk.

    tau = beta min over right rows of mean_k s    p = share of right rows

  No gradient. Tokens of wrong rows that look like those of right rows are
  spared: pushing them down would push the right rows down too. Groups without
  right or without wrong rows keep A. Right: unshaped reward above
  `correct_above`.
  Source: "On the Effect of Negative Gradient in Group Relative Deep
  Reinforcement Optimization" (NTHR), from an implementation note.
  Raises ValueError for a negative beta.
  """

  beta: float = 1.0  # >= 0
  correct_above: float = 0.5  # in units of the reward
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('hidden', 'group_probs')
  min_group_size: ClassVar[int] = 2

  def __post_init__(self):
    check_range(self, 'beta', 0.0)

  def __call__(self, credit_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B, T]."""
    chex.assert_rank(credit_B, 1)
    right_B, wrong_B, share_B = _mixed(traj, self.correct_above)
    s_BT = influence(traj, right_B)
    tau_B = self.beta * _threshold(s_BT, right_B, traj)
    spared_BT = (s_BT > tau_B[:, None]) & (wrong_B * share_B > 0)[:, None]
    damping_B = 2.0 * jnp.abs(share_B - 0.5)
    factor_BT = jnp.where(spared_BT, damping_B[:, None], 1.0)
    return credit_B[:, None] * factor_BT
