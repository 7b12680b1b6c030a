"""Turns with a switch, a sub-goal and an action: segments, places of values."""

import dataclasses

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.ops.turns import TurnView, turn_view
from rl_jax.types import Array, Trajectories

SWITCH, SUBGOAL, ACTION = 1, 2, 3  # values of span_BT
READS = {
  'span_BT': 'parts of a turn: 1 switch, 2 sub-goal, 3 action, else 0',
  'switch_BT': '1 on a token that begins a new sub-goal, else 0',
}


@dataclasses.dataclass(frozen=True)
class Hierarchy:
  """Sub-goals as segments of turns.

  span_BT: part of each trained token; a turn without an action is action as a
  whole. action_BT: 1 on the first action token of each turn. start_BK: 1 on
  turns that begin a segment, as the first one does. end_BK: 1 on the last turn
  of a segment.
  """

  view: TurnView
  span_BT: Array
  action_BT: Array
  start_BK: Array
  end_BK: Array

  def places(self) -> Array:
    """1 where the heads high, low and termination are read, [B, T, 3]."""
    first_BT = self.view.first_BT
    high_BT = first_BT * self.view.on_tokens(self.start_BK)
    return jnp.stack([high_BT, self.action_BT, first_BT], axis=-1)


def hierarchy(traj: Trajectories) -> Hierarchy:
  """The segments of traj.

  Raises: ValueError without `span_BT` and `switch_BT` (row_inputs.read).
  """
  view = turn_view(traj)
  span_BT, switch_BT = (
    row_inputs.read(traj, key, meaning) for key, meaning in READS.items()
  )
  span_BT = jnp.where(traj.mask_BT > 0, span_BT, 0)
  # Else nothing would be learned from text that has no parts.
  none_BK = (view.total(span_BT == ACTION) == 0).astype(jnp.float32)
  span_BT = jnp.where(view.on_tokens(none_BK) > 0, ACTION, span_BT)
  acts_BT = (span_BT == ACTION).astype(jnp.float32)
  # Acting tokens from here to the end of the turn, of all in it.
  before_BT = jnp.cumsum(acts_BT, axis=1) - acts_BT
  begun_BK = view.total(jnp.where(view.first_BT > 0, before_BT, 0.0))
  action_BT = acts_BT * (before_BT == view.on_tokens(begun_BK))
  played_BK = view.played_BK
  earlier_BK = jnp.cumsum(played_BK, axis=1) - played_BK
  switched_BK = view.total(switch_BT) > 0
  start_BK = played_BK * (switched_BK | (earlier_BK == 0))
  follows_BK = jnp.pad(played_BK[:, 1:], ((0, 0), (0, 1)))
  next_BK = jnp.pad(start_BK[:, 1:], ((0, 0), (0, 1)))
  end_BK = played_BK * jnp.maximum(next_BK, 1.0 - follows_BK)
  return Hierarchy(view, span_BT, action_BT, start_BK, end_BK)


def segment_returns(
  h: Hierarchy, reward_BK: Array, next_BK: Array, gamma: Array | float
) -> Array:
  """G_t = r_t + gamma G_{t+1} in a segment, r_t + gamma next_t at its end."""
  at_end_BK = h.end_BK * gamma * next_BK
  inside_BK = jnp.where(h.end_BK > 0, 0.0, gamma)
  paid_BK = h.view.played_BK * (reward_BK + at_end_BK)
  return reverse_linear_scan(paid_BK, inside_BK)


def levels(
  h: Hierarchy,
  reward_BK: Array,
  traj: Trajectories,
  gamma: Array | float,
  lam_turn: Array | float,
  lam_segment: Array | float,
  bootstrap: bool,
) -> tuple[Array, Array]:
  """(advantages, values) of the levels high, low and termination, [B, K, 3].

  Advantages of the first are 0 but at starts of segments. See the piece
  HierarchicalGAE.
  """
  places_BTH = h.places()
  high_BK, low_BK, term_BK = (
    h.view.total(places_BTH[..., i] * traj.values_BTH[..., i]) for i in range(3)
  )

  def later(x_BK: Array):
    return jnp.pad(x_BK[:, 1:], ((0, 0), (0, 1)))

  last_BK = h.view.played_BK * (1.0 - later(h.view.played_BK))
  cut_BK = last_BK * row_inputs.cut_B(traj)[:, None] * bootstrap
  # Of the segment that each turn belongs to.
  index_BK = jnp.arange(high_BK.shape[1])[None] * h.start_BK
  own_BK = jnp.take_along_axis(
    high_BK, index_BK.max(axis=1, keepdims=True).astype(jnp.int32), axis=1
  )
  next_high_BK = later(high_BK) * (1.0 - last_BK) + cut_BK * own_BK
  inside_BK = jnp.where(h.end_BK > 0, 0.0, later(low_BK))
  at_end_BK = later(high_BK) * (1.0 - last_BK) + cut_BK * low_BK
  next_low_BK = inside_BK + h.end_BK * at_end_BK
  delta_BK = h.view.played_BK * (reward_BK + gamma * next_low_BK - low_BK)
  decay_BK = jnp.where(h.end_BK > 0, 0.0, gamma * lam_turn)
  low_adv_BK = reverse_linear_scan(delta_BK, decay_BK)
  return_BK = segment_returns(h, reward_BK, next_high_BK, gamma)
  delta_BK = h.start_BK * (return_BK - high_BK)
  # gamma for each turn of a segment, and lam once.
  decay_BK = gamma * jnp.where(h.start_BK > 0, lam_segment, 1.0)
  high_adv_BK = h.start_BK * reverse_linear_scan(delta_BK, decay_BK)
  term_adv_BK = h.view.played_BK * (return_BK - term_BK)
  return (
    jnp.stack([high_adv_BK, low_adv_BK, term_adv_BK], axis=-1),
    jnp.stack([high_BK, low_BK, term_BK], axis=-1),
  )
