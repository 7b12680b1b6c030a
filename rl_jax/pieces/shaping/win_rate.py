"""The reward of a sample is how often it wins against its group."""

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, masked_sum, safe_divide
from rl_jax.pieces.ops.rivals import BEATS
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class WinRate(Shaping):
  """R_i = mean over valid j of the group of P(i beats j), j = i left out.

    P = sigmoid((r_i - r_j) / temperature), or by None 1, 1/2, 0 as r_i >, =, <

  Where a reward model or judge of pairs counts, P is its verdict, which may go
  round in circles as no reward can, and neither rewards nor temperature do.
  with_self counts j = i, too, with P = 1/2 (SPPO). Without rivals R is 1/2.
  against='opponent': only over rows with opponent_B (Nash-MD). `center` is
  taken off the result.
  Source: "A Minimaximalist Approach to Reinforcement Learning from Human
  Feedback" (SPO; reconstructed); SPPO compute_prob.py (by a digest).
  """

  temperature: float | None = ranged(None, 0.0, open_low=True)
  with_self: float = ranged(0.0, 0.0, 1.0)  # weight of the row itself
  against: str = chosen('group', ('group', 'opponent'))
  center: float = ranged(0.0)
  min_group_size = 2

  def check_win_rates(
    self, path: str, pairwise: list[str], others: list[str]
  ) -> None:
    """Raises ValueError if more than one judge of pairs has a weight.

    pairwise, others: names of the rewards with a weight, by their kind.
    """
    if others or len(pairwise) > 1:
      raise ValueError(
        f'{path} compares responses by {pairwise[0]}, which gives no reward '
        f'that others could be added to, but {[*pairwise[1:], *others]} have '
        'weights, too: set them to 0 (task.reward_weights)'
      )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B]."""
    reward_B, traj = ctx.credit, ctx.traj
    chex.assert_equal_shape([reward_B, traj.valid_B])
    reward_NG = by_group(reward_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    if self.against == 'opponent':
      opponent_B = row_inputs.read(traj, 'opponent_B')
      valid_NG = valid_NG * by_group(opponent_B, traj.group_size)
    gap_NGG = reward_NG[:, :, None] - reward_NG[:, None]
    if BEATS in traj.extras:
      win_NGG = by_group(traj.extras[BEATS], traj.group_size)
    elif self.temperature is None:
      win_NGG = 0.5 * (1.0 + jnp.sign(gap_NGG))
    else:
      win_NGG = jax.nn.sigmoid(gap_NGG / self.temperature)
    self_GG = jnp.eye(traj.group_size)
    weight_NGG = jnp.where(self_GG > 0, self.with_self, valid_NG[:, None])
    total_NG = masked_sum(win_NGG, weight_NGG, axis=2)
    count_NG = weight_NGG.sum(2)
    rate_NG = jnp.where(count_NG > 0, safe_divide(total_NG, count_NG), 0.5)
    return CreditOut(rate_NG.ravel() - self.center)
