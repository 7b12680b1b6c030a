"""SPO tree: rows of a group share their first segments."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces.ops import trees
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.types import FORCED, PAD, POLICY, Array, Trajectories, static


@piece
class SegmentTree(RolloutWrapper):
  """A group is the leaves of a tree that branches every `segment_tokens`.

  branches (b_0, b_1): the prompt has b_0 continuations of segment_tokens, each
  of these b_1, and every one of the last the same share of group_size, which
  runs to the end. A response that ends in a segment is the leaf of all rows
  below it. A segment is part of every row below it and is trained in the first
  valid one only, where its tokens have kind POLICY; elsewhere they are FORCED.
  Only tokens with p < threshold are trained, and no segment whose advantage, of
  the unshaped rewards, is 0. Fills extras 'node_BK' and 'edge_end_BK' for
  credit.TreeDifference.
  Source: "Segment Policy Optimization", tree variant; AIFrameResearch/SPO
  tree_episode_generator.py (6-6-6 of 30 tokens on GSM8K).
  """

  branches: tuple[int, ...] = static(default=(2, 2))
  segment_tokens: int = ranged(30, 1, static=True)
  threshold: float = ranged(0.9, 0.0, 1.0, open_low=True)

  def __post_init__(self):
    if not all(isinstance(b, int) and b > 0 for b in self.branches):
      text = f'SegmentTree.branches = {self.branches!r}'
      raise ValueError(f'{text}: expected counts above 0')

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the leaves do not share the group evenly."""
    rollout = context.rollout
    if rollout is None:
      return
    nodes = math.prod(self.branches)
    if rollout.group_size % nodes:
      raise ValueError(
        f'method.rollout: SegmentTree.branches = {self.branches} make {nodes} '
        f'nodes, which must divide rollout.group_size = {rollout.group_size}'
      )

  def _leaves(self, group_size: int) -> list[int]:
    """Rows below a node of each level, from the prompt's children on."""
    counts = np.cumprod(self.branches, dtype=int)
    return [int(group_size // count) for count in counts]

  def shapes(self, traj: Trajectories) -> Trajectories:
    """Adds the nodes above each row."""
    shape = traj.length_B.shape[0], len(self.branches)
    names = ('node_BK', 'edge_end_BK')
    nodes = dict.fromkeys(names, jax.ShapeDtypeStruct(shape, jnp.int32))
    return traj.replace(extras={**traj.extras, **nodes})

  def begin(self, traj: Trajectories, sampler: Any) -> Trajectories:
    """Rows with all segments but the last."""
    ends = []
    for size in map(np.int32, self._leaves(traj.group_size)):
      traj = sampler.run_rows(self._only_first, traj, size)
      traj = sampler.write(traj, self.segment_tokens)
      traj = sampler.run_rows(self._shared, traj, size)
      ends.append(traj.length_B)
    return sampler.run_rows(self._with_nodes, traj, tuple(ends))

  def _only_first(self, traj: Trajectories, size: Array) -> Trajectories:
    """Rows that are not the first of `size` wait: they have ended for now."""
    others_B = traj.row_id_B2[:, 1] % size > 0
    return traj.replace(finished_B=traj.finished_B | others_B)

  def _shared(self, traj: Trajectories, size: Array) -> Trajectories:
    """The others take over what the first of their `size` rows has written."""
    behind_B = traj.row_id_B2[:, 1] % size
    first_B = jnp.arange(len(behind_B)) - behind_B
    copied_B1 = behind_B[:, None] > 0
    kind_BT = traj.kind_BT[first_B]
    forced_BT = copied_B1 & (kind_BT != PAD)
    logp_BT = traj.logp_behaviour_BT[first_B]
    return traj.replace(
      response_BT=traj.response_BT[first_B],
      kind_BT=jnp.where(forced_BT, FORCED, kind_BT),
      logp_behaviour_BT=jnp.where(copied_B1, 0.0, logp_BT),
      length_B=traj.length_B[first_B],
      finished_B=traj.finished_B[first_B],
    )

  def _with_nodes(
    self, traj: Trajectories, end_KB: tuple[Array, ...]
  ) -> Trajectories:
    """Returns what the credit reads."""
    sample_B, sizes = traj.row_id_B2[:, 1], self._leaves(traj.group_size)
    none_B0 = jnp.zeros((len(sample_B), 0), jnp.int32)

    def columns(xs):
      return jnp.stack(xs, axis=1) if xs else none_B0

    return traj.replace(
      extras={
        **traj.extras,
        'node_BK': columns([sample_B // size for size in sizes]),
        'edge_end_BK': columns(end_KB),
      }
    )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows of which the trained tokens are left in the mask, no round)."""
    handed = sampler.run(self._handed_on, traj)
    return sampler.run(self._trained, handed), []

  def _handed_on(self, traj: Trajectories) -> Trajectories:
    """Every segment becomes that of the first valid row below it.

    The first row of all has written it, which weighs nothing if it is invalid.
    Without a valid row below it a segment stays where it is.
    """
    row_B = jnp.arange(len(traj.valid_B))
    writers, owners = [], []
    for size in (*self._leaves(traj.group_size), 1):  # 1: the leaves themselves
      first_B = row_B - row_B % size
      behind_M = (by_group(traj.valid_B, size) > 0).argmax(1)
      writers.append(first_B)
      owners.append(first_B + jnp.repeat(behind_M, size))
    writer_BT, owner_BT = (
      trees.on_edges(
        jnp.stack(rows, axis=1),
        traj.extras['edge_end_BK'],
        traj.mask_BT.shape[1],
      )
      for rows in (writers, owners)
    )
    own_BT = owner_BT == row_B[:, None]

    def written(x_BT):
      return jnp.take_along_axis(x_BT, writer_BT, axis=0)

    kind_BT = written(traj.kind_BT)
    return traj.replace(
      kind_BT=jnp.where(~own_BT & (kind_BT == POLICY), FORCED, kind_BT),
      logp_behaviour_BT=jnp.where(own_BT, written(traj.logp_behaviour_BT), 0.0),
      mask_BT=own_BT * written(traj.mask_BT),
    )

  def _trained(self, traj: Trajectories) -> Trajectories:
    """Own, uncertain tokens of segments that have an advantage."""
    edge_BK = trees.edge_advantages(
      traj.reward_B,
      traj.valid_B,
      traj.extras['node_BK'],
      traj.group_size,
      scaled=False,
    )
    credit_BT = trees.on_edges(
      edge_BK, traj.extras['edge_end_BK'], traj.mask_BT.shape[1]
    )
    own_BT = (traj.kind_BT == POLICY) & (credit_BT != 0)
    own_BT &= traj.logp_behaviour_BT < jnp.log(jnp.float32(self.threshold))
    return traj.replace(mask_BT=traj.mask_BT * own_BT)
