"""RLPrompt: soft Q-learning whose action values are the logits."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import (
  at_last_token,
  last_token,
  zero_masked,
)
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Average
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.pieces.statistics.log_normaliser import LogNormaliser
from rl_jax.types import static

_VALUE = LogNormaliser('target')


@piece
class PathConsistency(Loss):
  """l_t = 1/2 (logp_t - (V_{t+1} - V_t))^2 + 1/2 (logp_t + ... - (R - V_t))^2.

    V_t = log sum_v exp(logits of the target policy),   V = R after the end

  The second sum runs over all trained tokens from t on. R = scale * A is the
  advantage of the row at its last token; logits are action values Q, so that
  logp = Q - log sum exp Q. At the minimum the policy is exp(Q), normalised. The
  target is a moving average of the policy, one step an iteration.
  Source: Guo et al., "Efficient (Soft) Q-Learning for Text Generation with
  Limited Good Data"; mingkaid/rl-prompt sql_losses.py (v2_v3), where the
  average moves with every optimizer step.
  """

  scale: float = ranged(5.0, 0.0, open_low=True)
  target: Any = static(default=Average(decay=0.999))
  aggregation: Any = None  # overrides the method's
  per_group = True
  needs = (_VALUE,)
  off_policy = True

  @property
  def policies(self) -> dict[str, Any]:
    """The target policy."""
    return {'target': self.target}

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    stats, traj = ctx.stats, ctx.traj
    logp_BT, value_BT = stats['logp'], stats[_VALUE.name]
    chex.assert_equal_shape([logp_BT, value_BT, traj.mask_BT])
    one_B = jnp.ones_like(traj.weight_B)
    last_BT = at_last_token(one_B, traj.mask_BT)
    reward_B = self.scale * last_token(traj.advantages_BT, traj.mask_BT)
    reward_B1 = reward_B[:, None]
    after_BT = next_kept(value_BT, traj.mask_BT)
    after_BT = jnp.where(last_BT > 0, reward_B1, after_BT)
    step_BT = logp_BT - (after_BT - value_BT)
    logp_BT = zero_masked(logp_BT, traj.mask_BT)
    rest_BT = reverse_linear_scan(logp_BT, jnp.ones_like(logp_BT))
    path_BT = rest_BT - (reward_B1 - value_BT)
    return LossOut(
      0.5 * (step_BT**2 + path_BT**2),
      {
        'policy/step_error': step_BT**2,
        'policy/path_error': path_BT**2,
      },
    )
