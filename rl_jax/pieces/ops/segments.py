"""Turns, steps and actions: spans of trained tokens inside a response."""

import jax
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import safe_divide
from rl_jax.pieces.ops.sequences import run_starts
from rl_jax.types import Array, Trajectories

# turns: every turn of an episode is a segment; without a record of turns every
# run of trained tokens between environment tokens.
# extras: segments begin where extras['segment_start_BT'] says so.
SOURCES = ('turns', 'extras')


def turn_starts(mask_BT: Array, turn_BT: Array | None) -> Array:
  """1 on the first trained token of every turn, [B, T] bool.

  turn_BT: of every token; None: every run of trained tokens is a turn.
  """
  begins_BT = run_starts(mask_BT) > 0
  if turn_BT is None:
    return begins_BT
  # An observation may be empty, so that two turns touch.
  before_BT = jnp.pad(turn_BT[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
  return (mask_BT > 0) & (begins_BT | (turn_BT != before_BT))


def segment_starts(traj: Trajectories, source: str) -> Array:
  """1 on the first trained token of every segment, [B, T] bool."""
  if source == 'turns':
    return turn_starts(traj.mask_BT, traj.turn_BT)
  kept_BT = traj.mask_BT > 0
  first_BT = kept_BT & (jnp.cumsum(kept_BT, axis=1) == 1)
  given_BT = row_inputs.read(traj, 'segment_start_BT') > 0
  return first_BT | (kept_BT & given_BT)


def segment_means(
  x_BT: Array, start_BT: Array, mask_BT: Array
) -> tuple[Array, Array, Array]:
  """Means of x over the trained tokens of each segment.

  Returns:
    (mean, tokens, index): column s of `mean` and `tokens` [B, T] belongs to
    segment s of the row, with 0 tokens where there is no such segment; index
    [B, T] int32 is the segment of every token.
  """
  kept_BT = (mask_BT > 0).astype(jnp.float32)
  index_BT = jnp.maximum(jnp.cumsum(start_BT.astype(jnp.int32), axis=1) - 1, 0)
  width = mask_BT.shape[1]

  def total(x_T: Array, index_T: Array):
    return jax.ops.segment_sum(x_T, index_T, num_segments=width)

  sums = jax.vmap(total)(jnp.where(mask_BT > 0, x_BT, 0.0), index_BT)
  tokens = jax.vmap(total)(kept_BT, index_BT)
  return safe_divide(sums, tokens), tokens, index_BT
