"""The geometric mixture of the policy and another one, token by token."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Average, Frozen
from rl_jax.pieces.roles import LogitContext, LogitTransform
from rl_jax.types import Array


@piece
class PolicyMixture(LogitTransform):
  """log pi'(v) = (1 - coef) log pi(v) + coef log pi_other(v) - log Z.

  The other is the reference or, with a decay, the moving average of the policy.
  coef 0 is the policy, 1 the other; the same as mixing logits. In an evaluation
  it is the policy. Source: Nash-MD and Nash-EMA, "Nash Learning from Human
  Feedback"; TRL nash_md_trainer.py (by a digest).
  """

  coef: float = ranged(0.125, 0.0, 1.0)
  decay: float | None = ranged(None, 0.0, 1.0)

  @property
  def policies(self) -> dict[str, Any]:
    """The other one, by the name under which its logits come."""
    if self.decay is None:
      return {'reference': Frozen()}
    return {'average': Average(decay=self.decay)}

  def __call__(self, ctx: LogitContext) -> Array:
    """Logits of pi'."""
    logits_RV = ctx.logits_RV
    other_RV = ctx.others.get('reference' if self.decay is None else 'average')
    if other_RV is None:
      return logits_RV
    return _share(1.0 - self.coef, logits_RV) + _share(self.coef, other_RV)


def _share(weight: Array | float, logits_RV: Array) -> Array:
  """weight * logits, and 0 for weight 0: logits may be -inf after a cut."""
  return weight * jnp.where(weight > 0, logits_RV, 0.0)
