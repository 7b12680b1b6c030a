"""T-PPO: GAE that bootstraps from the last value of a waiting response."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import at_last_token, on_tokens
from rl_jax.pieces.ops.returns import lambda_advantage, next_kept
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class ExtendedGAE(Credit):
  """GAE in which V after the last token of a waiting response is V_last, not 0.

    delta_t = r_t + gamma V_{t+1} - V_t,  A_t = delta_t + gamma lam A_{t+1}
    waiting: V_{T+1} := V_T, so that with gamma 1 the last delta is r_T

  A response waits if it continues in the next iteration (extras['waits_B']).
  One that ended, by itself or at the token limit, has its outcome reward and V
  = 0 after its last token; an outcome reward [B] of a waiting one is not read.
  Tokens outside the mask pass credit through, as in GAE.
  Source: "Truncated Proximal Policy Optimization", EGAE, from reviews and
  digests.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per token
  lam: float = ranged(0.95, 0.0, 1.0)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    mask_BT, values_BT = traj.mask_BT, traj.values_BT
    waits_B = row_inputs.waits_B(traj)
    if credit.ndim == 1:
      credit = jnp.where(waits_B > 0, 0.0, credit)
    cut_BT = at_last_token(waits_B, mask_BT)
    next_BT = next_kept(values_BT, mask_BT) + cut_BT * values_BT
    reward_BT = on_tokens(credit, mask_BT)
    return CreditOut(
      lambda_advantage(reward_BT, next_BT, traj, self.gamma, self.lam)
    )
