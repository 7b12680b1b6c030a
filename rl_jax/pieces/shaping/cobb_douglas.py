"""GTAlign: the reward is a geometric mean of several welfares."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import static


@piece
class CobbDouglas(Shaping):
  """R = (prod_k (max(r_k, 0) + eps))^(1 / K) of the named components.

  Large only where all are: of two with a given sum it is largest where they are
  equal. Replaces the reward.
  Source: ulab-uiuc/GTAlign recipe/gamellm/tasks/math_hard.py (two welfares, by
  a digest); K of them is the same form.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  eps: float = ranged(1e-4, 0.0)  # in units of the components

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    welfare_KB = (
      jnp.maximum(row_inputs.components(self, ctx.traj), 0.0) + self.eps
    )
    return CreditOut(welfare_KB.prod(0) ** (1.0 / len(self.components)))
