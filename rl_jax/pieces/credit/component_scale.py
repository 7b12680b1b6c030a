"""Each reward component on its own scale before they are added."""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_var,
  safe_sqrt,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import static


@piece
class ComponentScale(Credit):
  """A = sum_k w_k (r_k - mean) / (std + eps), of the group or of the batch.

  Over valid rows, see `over`. Added before they are scaled, components with a
  small spread hardly count; here each counts with its weight. Replaces the
  credit; one component of weight 1, over the group, is GroupCenter and
  GroupScale.
  Source: Ichihara et al., "MO-GRPO: Mitigating Reward Hacking of GRPO on
  Multi-Objective Problems", 2025 (reconstructed, not compared); by batch it is
  Parrot's.
  Raises ValueError unless every component has its weight.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  weights: tuple[float, ...] = static(default=(1.0, 1.0))
  eps: float = ranged(1e-6, 0.0, open_low=True)  # in units of the reward
  over: str = chosen('group', ('group', 'batch'))

  @property
  def min_group_size(self) -> int:
    """Only the scale of a group needs two samples of a prompt."""
    return 2 if self.over == 'group' else 1

  def __post_init__(self):
    if len(self.components) != len(self.weights):
      raise ValueError(
        f'ComponentScale.weights = {self.weights} must have one number for '
        f'each of components = {self.components}'
      )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    size = traj.group_size if self.over == 'group' else len(credit_B)
    valid_NG = by_group(traj.valid_B, size)
    total_NG = jnp.zeros_like(valid_NG)
    reward_KB = row_inputs.components(self, traj)
    for weight, reward_B in zip(self.weights, reward_KB, strict=True):
      reward_NG = by_group(reward_B, size)
      centered_NG = masked_center(reward_NG, valid_NG, axis=1)
      var_N1 = masked_var(reward_NG, valid_NG, axis=1, ddof=1, keepdims=True)
      total_NG += weight * centered_NG / (safe_sqrt(var_N1) + self.eps)
    return CreditOut(total_NG.ravel())
