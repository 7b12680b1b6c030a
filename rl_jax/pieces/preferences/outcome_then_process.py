"""StepORLM's pairs: by the outcome first, then by the quality of the steps."""

import functools

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import links
from rl_jax.pieces.ops.edges import all_pairs, ends
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Pairs
from rl_jax.types import Array, static


@piece
class OutcomeThenProcess(Pairs):
  """Every two samples, ranked by (outcome o, process score q).

    weight = 1 where o_win > o_lose, q_win - q_lose where outcomes are equal

  The larger outcome wins whatever the process scores are, in any units; equal
  in both: no edge. Margins are 0; the shaped reward does not count.
  Source: W-DPO of "StepORLM" (weights by process scores from a secondary
  source, this form reconstructed).
  """

  outcome: str = static(default='outcome')  # a reward component
  process: str = static(
    default='format'
  )  # another: share of steps judged right
  gives = links.NOTHING
  min_group_size = 2

  @property
  def components(self) -> tuple[str, str]:
    """The components of the rewards that it reads."""
    return self.outcome, self.process

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """G (G - 1) / 2 edges."""
    traj = ctx.traj
    outcome_B, process_B = row_inputs.components(self, traj)
    above = functools.partial(_above, traj.group_size)
    better_NGG = above(outcome_B) | ~above(-outcome_B) & above(process_B)
    beaten_B = better_NGG.sum(axis=2).ravel()
    edges = all_pairs(beaten_B.astype(jnp.float32), traj.group_size, 0.0)
    higher_NE, lower_NE = ends(outcome_B, edges)
    good_NE, bad_NE = ends(process_B, edges)
    weight_NE = jnp.where(higher_NE > lower_NE, 1.0, good_NE - bad_NE)
    return CreditOut(edges.replace(weight_NE=edges.weight_NE * weight_NE))


def _above(group_size: int, x_B: Array):
  """Returns whether sample i of a group has a larger value than sample j, [N,
  G, G].
  """
  x_NG = by_group(x_B, group_size)
  return x_NG[:, :, None] > x_NG[:, None, :]
