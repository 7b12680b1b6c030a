"""EGPO (FunRL): a bounded entropy bonus on the advantage."""

from typing import ClassVar

import chex
from flax import struct
import jax.numpy as jnp

from rl_jax.checks import check_choice, check_range
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.types import Array, Trajectories, static


@struct.dataclass(kw_only=True)
class EntropyShaping:
  """A_k + coef * clip(H_k, -|A_k| / alpha, |A_k| / alpha).

  H_k is the mean token entropy of the sampling policy over the response, or
  over extras['think_mask_BT'] with span 'think'; no gradient. The sign of A
  is kept if coef < alpha.
  Source: "Exploring Superior Function Calls via Reinforcement Learning"
  (FunRL, later EGPO), from a verl reproduction plan.
  Raises ValueError for values outside the ranges below, or an unknown span.
  """

  coef: float = 0.4  # advantage per nat, >= 0
  alpha: float = 2.0  # > 0
  span: str = static(default='response')
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('entropy',)

  def __post_init__(self):
    check_range(self, 'coef', 0.0)
    check_range(self, 'alpha', 0.0, open_low=True)
    check_choice(self, 'span', ('response', 'think'))

  def __call__(self, credit_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    chex.assert_rank(credit_B, 1)
    mask_BT = traj.mask_BT
    if self.span == 'think':
      mask_BT = mask_BT * (row_inputs.read(traj, 'think_mask_BT') > 0)
    entropy_B = masked_mean(traj.entropy_BT, mask_BT, axis=1)
    bound_B = jnp.abs(credit_B) / self.alpha
    return credit_B + self.coef * jnp.clip(entropy_B, -bound_B, bound_B)
