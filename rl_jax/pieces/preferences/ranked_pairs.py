"""Pair makers that rank the samples of a group by their rewards.

Pair makers are (rewards after shaping, traj) -> which samples are compared.
Equal rewards make no edge. Rows that are not trained lose their edges later, by
their weights. margin_NE is margin_scale times the difference of the rewards.
"""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.edges import oriented, row_reward
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, ScaledPairs
from rl_jax.types import Array, Trajectories

_LAST = 1 << 30  # above every sample number


@piece
class BestWorst(ScaledPairs):
  """The sample with the largest reward against that with the smallest.

  Of samples with equal rewards the one with the smallest sample number counts.
  Source: RLHFlow/Online-RLHF annotate_data (max_min), by a digest of the code.
  """

  min_gap: float = ranged(0.0, 0.0)  # of rewards; not above it: no edge
  margin_scale: float = ranged(0.0, 0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """One edge a group."""
    reward, traj = ctx.credit, ctx.traj
    order = _Ranked(reward, traj)
    rank_NG, last_N1 = order.rank_NG, order.valid_NG.sum(1, keepdims=True) - 1
    best_N1 = rank_NG[:, :1]
    lowest_N1 = _at(order.reward_NG, _at(rank_NG, jnp.maximum(last_N1, 0)))
    tied_NG = order.valid_NG & (order.reward_NG == lowest_N1)
    worst_N1 = jnp.where(tied_NG, order.sample_NG, _LAST).argmin(
      1, keepdims=True
    )
    gap_N1 = _at(order.reward_NG, best_N1) - _at(order.reward_NG, worst_N1)
    gap_N1 = jnp.where(order.valid_NG.any(1, keepdims=True), gap_N1, 0.0)
    edges = oriented(best_N1, worst_N1, gap_N1, self.margin_scale)
    wide_N1 = (gap_N1 > self.min_gap).astype(jnp.float32)
    return CreditOut(edges.replace(weight_NE=edges.weight_NE * wide_N1))


@piece
class Adjacent(ScaledPairs):
  """Neighbours in the ranking by reward: first against second, and so on.

  Groups with invalid samples keep the comparisons of the others.
  """

  margin_scale: float = ranged(0.0, 0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G - 1 edges."""
    reward, traj = ctx.credit, ctx.traj
    order = _Ranked(reward, traj)
    win_NE, lose_NE = order.rank_NG[:, :-1], order.rank_NG[:, 1:]
    gap_NE = _at(order.reward_NG, win_NE) - _at(order.reward_NG, lose_NE)
    both_NE = _at(order.valid_NG, win_NE) & _at(order.valid_NG, lose_NE)
    gap_NE = jnp.where(both_NE, gap_NE, 0.0)
    return CreditOut(oriented(win_NE, lose_NE, gap_NE, self.margin_scale))


class _Ranked:
  """Rewards, validity and samples by group; ranks by falling rewards.

  Equal rewards are ranked by sample numbers, whatever the order of the rows;
  invalid samples come last.
  """

  def __init__(self, reward: Array, traj: Trajectories):
    G = traj.group_size
    self.reward_NG = by_group(row_reward(reward, traj), G)
    self.valid_NG = by_group(traj.valid_B > 0, G)
    self.sample_NG = by_group(traj.row_id_B2[:, 1], G)
    key_NG = jnp.where(self.valid_NG, -self.reward_NG, jnp.inf)
    self.rank_NG = jnp.lexsort((self.sample_NG, key_NG), axis=1)


def _at(x_NG: Array, index_NE: Array):
  return jnp.take_along_axis(x_NG, index_NE, axis=1)
