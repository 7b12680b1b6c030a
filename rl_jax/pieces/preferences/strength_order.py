"""MAPL: a stronger preference has the larger difference of scores."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.edges import ends, live_weights
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class StrengthOrder(Regularizer):
  """L = coef mean over pairs (e, f) of edges with g_e > g_f of -ls(h_e - h_f).

  h = s_win - s_lose is the difference of scores of an edge, g = R_win - R_lose
  that of the unshaped rewards, its strength; pairs are all those of the
  minibatch, of any two prompts, so that E edges take E^2 numbers. A number
  added to the scores of a prompt changes nothing.
  Source: "Multi-level Aware Preference Learning" (MAPL), the term between
  samples (reconstructed; the one within a sample changes prompts, not this).
  """

  score: Any  # preferences.scores
  coef: float = ranged(1.0, 0.0)  # ours; unverified in the paper
  aggregation: Any = None  # a scalar loss is not aggregated
  min_group_size = 2

  @property
  def needs(self) -> tuple[Any, ...]:
    """The statistics that the score reads."""
    return tuple(self.score.needs)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError without pairs."""
    method = context.method
    if method.pairs is None:
      raise ValueError(
        'StrengthOrder compares pairs: set method.pairs, for example to '
        'BestWorst()'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    live_M = (live_weights(traj) != 0).astype(jnp.float32).ravel()
    gap_M, strength_M = (
      jnp.where(live_M > 0, (win_NE - lose_NE).ravel(), 0.0)
      for win_NE, lose_NE in (
        ends(self.score(ctx), traj.edges),
        ends(traj.reward_B, traj.edges),
      )
    )
    stronger_MM = strength_M[:, None] > strength_M[None]
    weight_MM = stronger_MM * live_M[:, None] * live_M[None]
    ahead_MM = gap_M[:, None] - gap_M[None]
    loss = masked_mean(-jax.nn.log_sigmoid(ahead_MM), weight_MM)
    right_MM = (ahead_MM > 0).astype(jnp.float32)
    return LossOut(
      self.coef * loss,
      {'preference/strength_accuracy': masked_mean(right_MM, weight_MM)},
    )
