"""Token rewards from spans that a critic calls good or bad."""

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class SpanRewards(Shaping):
  """r_t = coef s_t + outcome R on the last trained token.

  s_t is the score of the span that the token is in, 0 outside of spans. coef 0
  and outcome 1 leave the reward as it is.
  Source: Text2Grad, microsoft/Text2Grad (by a digest), where outcome is 0.
  """

  coef: float = ranged(1.0, 0.0)
  outcome: float = ranged(0.0, 0.0)
  reads = {'span_score_BT': 'score of the span that the token is in, or 0'}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    key = 'span_score_BT'
    score_BT = row_inputs.read(traj, key, self.reads[key]) * traj.mask_BT
    reward_BT = on_tokens(reward, traj.mask_BT)
    return CreditOut(self.coef * score_BT + self.outcome * reward_BT)
