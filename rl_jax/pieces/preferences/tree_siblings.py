"""Losses on pairs of steps that have the same beginning: MCTS-DPO."""

from typing import Any

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import links, trees
from rl_jax.pieces.ops.edges import live_weights
from rl_jax.pieces.ops.masking import by_group, masked_mean, safe_divide
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array, Edges, Trajectories

_LAST = 1 << 30  # above every sample number


@piece
class TreeSiblings(Loss):
  """L = mean over nodes of the tree of loss(best child, worst child).

  The rows of a group are the leaves of a tree (rollouts.wrappers.SegmentTree).
  A child is the step below a node: its value is the mean unshaped reward of the
  valid leaves below it, its tokens are those of the first row that trains it.
  `loss` is one on edges (PairLoss, ChosenLikelihood); it sees the step's tokens
  only, so that what siblings share has no gradient. Children of equal value
  make no edge.
  Source: YuxiXie/MCTS-DPO (by a digest): best and worst child at each depth of
  a search tree; means over leaves in place of the search's Q are ours, and
  visit counts, which would all be equal here, smooth no labels.
  """

  loss: Any  # preferences.PairLoss, or ChosenLikelihood
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  min_group_size = 2
  reads = {
    'node_BK': 'numbers of the nodes of a tree above the row, in its group',
    'edge_end_BK': 'tokens of the row up to each of these nodes',
  }
  off_policy = True

  @property
  def needs(self) -> tuple[Any, ...]:
    """The statistics that the loss reads."""
    return tuple(self.loss.needs)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the loss reads more than which child is better."""
    del context
    self.loss.check_edges(links.NOTHING, 'TreeSiblings()')

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar; metrics are means over the edges of all depths."""
    traj = ctx.traj
    node_BK, end_BK = (
      row_inputs.read(traj, name, text) for name, text in self.reads.items()
    )
    leaf_B1 = jnp.arange(len(node_BK), dtype=node_BK.dtype)[:, None]
    id_BK = jnp.concatenate([0 * leaf_B1, node_BK, leaf_B1], axis=1)
    depths = id_BK.shape[1] - 1
    depth_BK = jnp.broadcast_to(jnp.arange(depths), (len(node_BK), depths))
    depth_BT = trees.on_edges(depth_BK, end_BK, traj.mask_BT.shape[1])
    total, count = jnp.zeros(()), jnp.zeros(())
    sums: dict[str, Array] = {}
    for k in range(depths):
      rows = traj.replace(mask_BT=traj.mask_BT * (depth_BT == k))
      rows = rows.replace(edges=_siblings(rows, id_BK[:, k], id_BK[:, k + 1]))
      edges = (live_weights(rows) != 0).astype(jnp.float32).sum()
      out = self.loss(ctx._replace(traj=rows))
      total, count = total + edges * out.value, count + edges
      for name, x in out.metrics.items():
        sums[name] = sums.get(name, 0.0) + edges * x
    metrics = {name: safe_divide(x, count) for name, x in sums.items()}
    metrics['preference/edges'] = count / traj.num_prompts
    return LossOut(safe_divide(total, count), metrics)


def _siblings(rows: Trajectories, parent_B: Array, child_B: Array):
  """An edge for each node: its best child against its worst, [N, G]."""
  G = rows.group_size
  parent_NG, child_NG, reward_NG, valid_NG, sample_NG = (
    by_group(x, G)
    for x in (
      *(parent_B, child_B, rows.reward_B, rows.valid_B),
      rows.row_id_B2[:, 1],
    )
  )
  kept_NG = by_group((rows.mask_BT > 0).any(1), G) & (valid_NG > 0)
  child_NGG = child_NG[:, :, None] == child_NG[:, None]
  parent_NGG = parent_NG[:, :, None] == parent_NG[:, None]
  leaves_NGG = child_NGG * valid_NG[:, None]
  # Above the parent's smallest reward, as in trees.edge_advantages: children of
  # equal leaves are equal exactly.
  below_NGG = parent_NGG & (valid_NG > 0)[:, None]
  least_NGG = jnp.where(below_NGG, reward_NG[:, None], jnp.inf)
  above_NGG = reward_NG[:, None] - least_NGG.min(2, keepdims=True)
  value_NG = masked_mean(above_NGG, leaves_NGG, axis=2)
  earlier_NGG = sample_NG[:, None] < sample_NG[:, :, None]
  first_NG = kept_NG & ~(child_NGG & kept_NG[:, None] & earlier_NGG).any(2)
  top_NG = ~(parent_NGG & earlier_NGG).any(2)  # one edge for each parent

  def extreme(sign: float):
    """The first of the children with the largest sign * value."""
    among_NGG = parent_NGG & first_NG[:, None]
    key_NGG = jnp.where(among_NGG, sign * value_NG[:, None], -jnp.inf)
    found_NGG = among_NGG & (key_NGG == key_NGG.max(2, keepdims=True))
    index_NG = jnp.where(found_NGG, sample_NG[:, None], _LAST).argmin(2)
    return index_NG, jnp.take_along_axis(value_NG, index_NG, axis=1)

  (best_NG, high_NG), (worst_NG, low_NG) = extreme(1.0), extreme(-1.0)
  some_NG = (parent_NGG & first_NG[:, None]).any(2)
  return Edges(
    win_NE=best_NG.astype(jnp.int32),
    lose_NE=worst_NG.astype(jnp.int32),
    weight_NE=(top_NG & some_NG & (high_NG > low_NG)).astype(jnp.float32),
    margin_NE=jnp.zeros_like(value_NG),
  )
