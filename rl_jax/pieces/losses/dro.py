"""DRO: the policy gradient with a quadratic pull to the old policy."""

from typing import Any

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class DRO(Loss):
  """l_t = -(A_t logp_t - coef / 2 (logp_t - logp_old_t)^2).

  The coefficient of a token is A_t - coef * log-ratio: zero once the policy
  has moved by A / coef nats. No ratio and no clip; any sampling policy.
  Source: "Offline Regularised Reinforcement Learning for Large Language Models
  Alignment" (a sequence loss with a learned value); verl core_algos.py (dro)
  has this form per token.
  """

  coef: float = ranged(1.0, 0.0)  # advantage per nat
  aggregation: Any = None  # overrides the method's
  per_token = True
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    change_BT = log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT)
    pull_BT = 0.5 * change_BT**2
    return LossOut(
      -adv_BT * logp_BT + self.coef * pull_BT, {'policy/pull': pull_BT}
    )
