"""SPO tree: the difference of values at the two ends of a tree's edge."""

import chex

from rl_jax.checks import chosen
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import trees
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class TreeDifference(Credit):
  """A_t = V(child) - V(parent) of the edge that holds token t.

  The rows of a group are the leaves of a tree: V(leaf) = R, V(node) = mean of
  its children. scale 'std' divides by the standard deviation over the children
  of the parent (population, + 1e-8), 'none' does not. Reads extras 'node_BK'
  and 'edge_end_BK' (see rollouts/wrappers/segment_tree.py).
  Source: "Segment Policy Optimization", tree variant ('rloo' and 'grpo');
  AIFrameResearch/SPO tree_episode_generator.py.
  """

  scale: str = chosen('none', ('none', 'std'))
  min_group_size = 2
  reads = {
    'node_BK': 'numbers of the nodes of a tree above the row, in its group',
    'edge_end_BK': 'tokens of the row up to each of these nodes',
  }

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    chex.assert_rank(credit, 1)

    def read(key: str):
      return row_inputs.read(traj, key, self.reads[key])

    edge_BK = trees.edge_advantages(
      credit,
      traj.valid_B,
      read('node_BK'),
      traj.group_size,
      scaled=self.scale == 'std',
    )
    return CreditOut(
      trees.on_edges(edge_BK, read('edge_end_BK'), traj.mask_BT.shape[1])
    )
