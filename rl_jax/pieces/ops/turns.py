"""Turns of episodes as columns [B, K], and back to tokens."""

import dataclasses

import jax
import jax.numpy as jnp

from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.ops.segments import segment_starts
from rl_jax.types import Array, Trajectories


@dataclasses.dataclass(frozen=True)
class TurnView:
  """The turns of a batch.

  Without a record of turns every run of trained tokens is one: a single
  response has one turn, whose state is its prompt.
  index_BT: the turn of each token. first_BT: 1 on the first trained token of
  each turn. played_BK: 1 on turns with trained tokens.
  """

  mask_BT: Array
  index_BT: Array
  first_BT: Array
  played_BK: Array
  state_BK: Array
  action_BK: Array

  def total(self, x_BT: Array) -> Array:
    """Sums over the trained tokens of each turn, [B, K]."""
    kept_BT = jnp.where(self.mask_BT > 0, x_BT, 0.0)
    width = self.played_BK.shape[1]

    def add(x_T: Array, index_T: Array):
      return jax.ops.segment_sum(x_T, index_T, num_segments=width)

    return jax.vmap(add)(kept_BT, self.index_BT)

  def on_tokens(self, x_BK: Array) -> Array:
    """The value of its turn on every trained token, 0 elsewhere."""
    x_BT = jnp.take_along_axis(x_BK, self.index_BT, axis=1)
    return jnp.where(self.mask_BT > 0, x_BT, 0.0)

  def on_last(self, x_BK: Array) -> Array:
    """The value of a turn on its last trained token, 0 elsewhere."""
    return jnp.where(self.last_BT() > 0, self.on_tokens(x_BK), 0.0)

  def last_BT(self) -> Array:
    """1 on the last trained token of each turn."""
    first_BT, kept_BT = self.first_BT, (self.mask_BT > 0).astype(jnp.float32)
    # 1 where a trained token follows in the same turn.
    begins_BT = jnp.pad(first_BT[:, 1:], ((0, 0), (0, 1)))
    more_BT = jnp.pad(kept_BT[:, 1:], ((0, 0), (0, 1))) * (1 - begins_BT)
    return kept_BT * (1 - more_BT)

  def rewards(self, reward: Array) -> Array:
    """Rewards [B] (of the last turn) or [B, T] by turn, [B, K]."""
    return self.total(on_tokens(reward, self.mask_BT))

  def returns(self, reward_BK: Array, gamma: Array | float) -> Array:
    """sum_{j >= k} gamma^(j - k) r_j, [B, K]."""
    decay_BK = jnp.broadcast_to(jnp.asarray(gamma), reward_BK.shape)
    return reverse_linear_scan(reward_BK, decay_BK)


def turn_view(traj: Trajectories) -> TurnView:
  """The turns of traj; states and actions are -1 where they are unknown."""
  first_BT = segment_starts(traj, 'turns').astype(jnp.float32)
  if traj.turn_BT is None or traj.turns is None:
    count_BT = jnp.cumsum(first_BT, axis=1).astype(jnp.int32)
    index_BT = jnp.maximum(count_BT - 1, 0)
    shape = traj.mask_BT.shape
    state_BK = jnp.full(shape, -1).at[:, 0].set(0)
    action_BK = jnp.full(shape, -1)
  else:
    index_BT = jnp.maximum(traj.turn_BT, 0)
    state_BK, action_BK = traj.turns.state_BK, traj.turns.action_BK
  view = TurnView(
    mask_BT=traj.mask_BT,
    index_BT=index_BT,
    first_BT=first_BT,
    played_BK=jnp.zeros(state_BK.shape),
    state_BK=state_BK,
    action_BK=action_BK,
  )
  played_BK = (view.total(jnp.ones_like(traj.mask_BT)) > 0).astype(jnp.float32)
  return dataclasses.replace(view, played_BK=played_BK)


def turn_advantages(
  view: TurnView,
  reward_BK: Array,
  value_BK: Array,
  gamma: Array | float,
  lam: Array | float,
  behind_BK: Array | float = 0.0,
) -> Array:
  """A_k = r_k + gamma V_{k+1} - V_k + gamma lam A_{k+1}, A = 0 after the last.

  behind_BK: V after the last turn, in its column.
  """
  value_BK = value_BK * view.played_BK
  next_BK = jnp.pad(value_BK[:, 1:], ((0, 0), (0, 1))) + behind_BK
  delta_BK = view.played_BK * (reward_BK + gamma * next_BK - value_BK)
  decay_BK = jnp.broadcast_to(jnp.asarray(gamma * lam), delta_BK.shape)
  return reverse_linear_scan(delta_BK, decay_BK)
