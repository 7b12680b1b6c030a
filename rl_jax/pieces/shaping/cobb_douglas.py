"""GTAlign: the reward is a geometric mean of several welfares."""

from typing import ClassVar

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories, static


@piece
class CobbDouglas:
  """R = (prod_k (max(r_k, 0) + eps))^(1 / K) of the named components.

  Large only where all are: of two with a given sum it is largest where they are
  equal. Replaces the reward.
  Source: ulab-uiuc/GTAlign recipe/gamellm/tasks/math_hard.py (two welfares, by
  a digest); K of them is the same form.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  eps: float = ranged(1e-4, 0.0)  # in units of the components
  role: ClassVar[str] = 'shaping'

  def __call__(self, reward_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    del reward_B
    welfare_KB = jnp.maximum(row_inputs.components(self, traj), 0.0) + self.eps
    return welfare_KB.prod(0) ** (1.0 / len(self.components))
