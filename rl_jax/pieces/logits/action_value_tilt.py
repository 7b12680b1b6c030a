"""ILQL's acting rule: the cloned policy, tilted by what actions are worth."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LogitContext, LogitTransform
from rl_jax.pieces.statistics.action_values import split
from rl_jax.types import Array


@piece
class ActionValueTilt(LogitTransform):
  """pi'(v) = pi(v) exp(min(beta (min(Q_1(v), Q_2(v)) - V), clip)) / Z.

  The values are outputs of the policy's own value head, without gradient. clip
  None: no bound; 0: no token gains. beta 0 is the policy. It belongs into
  evaluation.transforms: in method.logits the likelihood of data would be that
  of pi', too.
  Source: as credit.ImplicitAdvantage, whose Q here are those of the target
  copy.
  """

  beta: float = ranged(16.0, 0.0)  # nats per unit of reward
  clip: float | None = ranged(0.0, 0.0)  # nats
  value_heads = True

  def __call__(self, ctx: LogitContext) -> Array:
    """Logits of pi'; values: the outputs of the value head, [R, 1 + 2 V]."""
    value_R, q_R2V = split(ctx.values_RH)
    gain_RV = self.beta * (q_R2V.min(axis=-2) - value_R[..., None])
    if self.clip is not None:
      gain_RV = jnp.minimum(gain_RV, self.clip)
    return ctx.logits_RV + gain_RV
