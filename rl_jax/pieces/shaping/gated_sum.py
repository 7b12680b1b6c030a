"""RLUF: a weighted sum of rewards, multiplied by a gate."""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import static


@piece
class GatedSum(Shaping):
  """R = sum_k w_k r_k where the gate's component >= threshold, else blocked.

  Components in `logits` are read as sigmoid(r): scores of a model that was
  trained as a classifier, as P[Love]. Without a gate every row passes. Replaces
  the reward.
  Source: "Reinforcement Learning from User Feedback" (RLUF; reconstructed: the
  abstract has the sum, the gate is ours).
  Raises ValueError unless every component has its weight.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  weights: tuple[float, ...] = static(default=(1.0, 0.3))
  logits: tuple[str, ...] = static(default=())  # of components
  gate: str | None = static(default=None)  # a component, summed or not
  threshold: float = ranged(0.5)  # in units of the gate
  blocked: float = ranged(0.0)  # the whole reward of such a row

  def __post_init__(self):
    if len(self.components) != len(self.weights):
      raise ValueError(
        f'GatedSum.weights = {self.weights} must have one number for each of '
        f'components = {self.components}'
      )
    if not set(self.logits) <= set(self.components):
      raise ValueError(
        f'GatedSum.logits = {self.logits} must be some of components = '
        f'{self.components}'
      )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.credit, ctx.traj
    total_B = jnp.zeros_like(reward_B)
    reward_KB = row_inputs.components(self, traj)
    for name, weight, part_B in zip(
      self.components, self.weights, reward_KB, strict=True
    ):
      if name in self.logits:
        part_B = jax.nn.sigmoid(part_B)
      total_B += weight * part_B
    if self.gate is None:
      return CreditOut(total_B)
    gate_B = row_inputs.read(traj, f'{self.gate}_B', 'the gate of GatedSum')
    return CreditOut(jnp.where(gate_B >= self.threshold, total_B, self.blocked))
