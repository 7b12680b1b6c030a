"""Scores of a reward model around 0, as company of a loss on pairs."""

from typing import Any

from rl_jax.checks import ranged
from rl_jax.pieces.ops.edges import edge_mean, ends, live_weights
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class CenteredScores(Regularizer):
  """coef mean over edges of (s_win + s_lose)^2.

  Comparisons fix scores up to a number for each prompt; this fixes it.
  Source: TRL reward_trainer.py (center_rewards_coefficient, 0.01 in its
  documentation; by a digest).
  """

  score: Any  # preferences.FinalValue
  coef: float = ranged(0.01, 0.0)
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True

  @property
  def needs(self) -> tuple[Any, ...]:
    """The statistics that the score reads."""
    return self.score.needs

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    win_NE, lose_NE = ends(self.score(ctx), traj.edges)
    weight_NE = live_weights(traj)
    return LossOut(
      self.coef * edge_mean((win_NE + lose_NE) ** 2, weight_NE),
      {'preference/score_mean': edge_mean((win_NE + lose_NE) / 2, weight_NE)},
    )
