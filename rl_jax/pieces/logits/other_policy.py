"""Samples are drawn from another policy."""

from typing import Any

from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Frozen, Loaded
from rl_jax.pieces.roles import LogitContext, LogitTransform
from rl_jax.types import Array, static

GUIDE = 'guide'


@piece
class OtherPolicy(LogitTransform):
  """log pi'(v) = log pi_other(v).

  The other is the policy of `path`, a work or model directory with the tokens
  of this one, or the initial policy. In an evaluation it is the policy itself.
  Source: a definition; guides of "Learning to Generate Better Than Your LLM".
  """

  path: str | None = static(default=None)

  @property
  def policies(self) -> dict[str, Any]:
    """The other one, by the name under which its logits come."""
    rule = Frozen() if self.path is None else Loaded(path=self.path)
    return {GUIDE: rule}

  def __call__(self, ctx: LogitContext) -> Array:
    """Logits of the other policy."""
    other_RV = ctx.others.get(GUIDE)
    return ctx.logits_RV if other_RV is None else other_RV
