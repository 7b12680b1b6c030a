"""SubPO: every token is credited with what it added to a set function."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class SetGains(Credit):
  """A_t = coef * sum of the marginal gains of tokens t, t + 1, ...

  Reads extras['marginal_gain_BT'], F(prefix and token) - F(prefix) of a
  monotone submodular F; the sum is F(response) - F(prefix). Added to the
  reward-to-go of what comes in, which is a row's advantage if it is [B].
  Source: "Submodular Reinforcement Learning", the gradient of the paper; the
  main.py of manish-pra/non-additive-RL multiplies by the value of the prefix.
  """

  coef: float = ranged(1.0)  # advantage per unit of F

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit_B, traj = ctx.per_row()
    gain_BT = row_inputs.read(traj, 'marginal_gain_BT')
    chex.assert_equal_shape([gain_BT, traj.mask_BT])
    kept_BT = jnp.where(traj.mask_BT > 0, gain_BT, 0.0)
    togo_BT = reverse_linear_scan(kept_BT, jnp.ones_like(kept_BT))
    return CreditOut(credit_B[:, None] + self.coef * togo_BT)
