"""Pair makers that look at every two samples of a group.

Pair makers read rewards after shaping and say which samples are compared. Equal
rewards make no edge. Rows that are not trained lose their edges later, by their
weights. margin_NE is margin_scale times the difference of the rewards.
"""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import links
from rl_jax.pieces.ops.edges import all_pairs, ends, row_reward
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Pairs, ScaledPairs


@piece
class RecordedPairs(Pairs):
  """Every chosen response of the data beats every rejected one of its prompt.

  Reads the data's own labels, whatever the rewards are; margin 0.
  """

  from_data = True
  labelled = True
  min_group_size = 2

  @property
  def gives(self) -> str:
    """No margins."""
    return links.NOTHING

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G (G - 1) / 2 edges."""
    traj = ctx.traj
    chosen_B = row_inputs.read(traj, 'chosen_B')
    edges = all_pairs(chosen_B, traj.group_size, 0.0)
    # Rows without a label take part in no comparison.
    known_NG = by_group(chosen_B >= 0, traj.group_size)
    weight_NE = edges.weight_NE
    for index_NE in (edges.win_NE, edges.lose_NE):
      weight_NE *= jnp.take_along_axis(known_NG, index_NE, axis=1)
    return CreditOut(edges.replace(weight_NE=weight_NE))


@piece
class GivenMargin(RecordedPairs):
  """The pairs of RecordedPairs, margin_NE = scale (reward_win - reward_lose).

  A negative margin says that the rewards contradict the label, which stays.
  Source: the adaptive margin of "Secrets of RLHF Part II" (rewards are then
  means of several reward models; by a secondary source). scale 0 is
  RecordedPairs.
  """

  scale: float = ranged(1.0, 0.0)

  @property
  def gives(self) -> str:
    """Margins, unless the scale is 0."""
    return links.MARGIN if self.scale else links.NOTHING

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G (G - 1) / 2 edges."""
    reward, traj = ctx.credit, ctx.traj
    edges = RecordedPairs.__call__(self, ctx).value
    win_NE, lose_NE = ends(row_reward(reward, traj), edges)
    return CreditOut(edges.replace(margin_NE=self.scale * (win_NE - lose_NE)))


@piece
class RecordWins(RecordedPairs):
  """The recorded response beats every sample beside it; margin 0.

  By the labels that rollouts.wrappers.BesideRecord gives.
  """

  from_data = False
  labelled = False


@piece
class AllPairs(ScaledPairs):
  """Every two samples whose rewards differ by more than min_gap."""

  min_gap: float = ranged(0.0, 0.0)  # of rewards
  margin_scale: float = ranged(0.0, 0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G (G - 1) / 2 edges."""
    reward, traj = ctx.credit, ctx.traj
    reward_B = row_reward(reward, traj)
    edges = all_pairs(reward_B, traj.group_size, 1.0)
    wide_NE = (edges.margin_NE > self.min_gap).astype(jnp.float32)
    return CreditOut(
      edges.replace(
        weight_NE=edges.weight_NE * wide_NE,
        margin_NE=self.margin_scale * edges.margin_NE,
      )
    )


@piece
class AgainstOpponent(ScaledPairs):
  """Each sample of the policy against each one of the opponent, by reward.

  Source: XPO, Algorithm 1 (one of each); ties make no edge, where TRL counts
  them as wins of the policy.
  """

  margin_scale: float = ranged(0.0, 0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G (G - 1) / 2 edges, of which those of one side have weight 0."""
    reward, traj = ctx.credit, ctx.traj
    reward_B = row_reward(reward, traj)
    edges = all_pairs(reward_B, traj.group_size, self.margin_scale)
    sides_NE = ends(row_inputs.read(traj, 'opponent_B'), edges)
    across_NE = (sides_NE[0] != sides_NE[1]).astype(jnp.float32)
    return CreditOut(edges.replace(weight_NE=edges.weight_NE * across_NE))
