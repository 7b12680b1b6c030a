"""Vision-R1: thresholds on the overlap of a box harden during training."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array


@piece
class OverlapStages(Shaping):
  """R + T(q) + 1[q > low], T(q) = 0 below low, 1 above high, q between them.

  q is the overlap of the predicted box with the true one: precision and recall
  of one box. low and high are those of the second stage from rollout `switch`
  on. R is what the reward was, for example a format's. State: the rollouts.
  Source: jefferyZhan/Griffon Vision-R1 visionr1_qwen.py (by a digest; one box,
  and the overlap that the task measures in place of GIoU).
  """

  low: float = ranged(0.5, 0.0, 1.0)  # first stage
  high: float = ranged(0.75, 0.0, 1.0)
  later_low: float = ranged(0.75, 0.0, 1.0)  # second stage
  later_high: float = ranged(0.9, 0.0, 1.0)
  switch: int = ranged(1500, 0, static=True)  # rollouts of the first stage
  reads = {'iou_B': 'overlap of the predicted box with the true one, 0 to 1'}

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No rollout has been seen."""
    del num_prompts
    return {'rollouts': jnp.zeros(())}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)
    overlap_B = row_inputs.read(traj, 'iou_B', self.reads['iou_B'])
    later = state['rollouts'] >= self.switch
    low = jnp.where(later, self.later_low, self.low)
    high = jnp.where(later, self.later_high, self.high)
    kept_B = jnp.where(overlap_B > high, 1.0, overlap_B)
    precision_B = jnp.where(overlap_B < low, 0.0, kept_B)
    recall_B = (overlap_B > low).astype(jnp.float32)
    state = {'rollouts': state['rollouts'] + 1.0}
    return CreditOut(reward_B + precision_B + recall_B, state)
