"""Vision-R1 with several boxes: precision and recall of matched overlaps."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array

_OVERLAP = (
  'generalised overlap, from -1 to 1, of a predicted box with the true box of '
  'that number; below -1 where none is matched'
)


@piece
class MatchedOverlapStages(Shaping):
  """R + precision + recall of the boxes that are matched to the true ones.

    precision = mean over matched boxes j of T(q_j; low, high)
    recall = T(sum_j 1[q_j > low] / true boxes; recall_low, recall_high)
    T(x; a, b) = 0 below a, 1 above b, x between them

  q_j is the generalised overlap (GIoU) of a matched pair; the task matches
  (worlds.ManyBoxes). Predicted boxes that are left over cost nothing, and
  without a match both are 0. low and high are those of the second stage from
  rollout `switch` on; those of the recall stay. R is what the reward was, for
  example a format's. State: the rollouts. With one box and recall_low = 0 this
  is OverlapStages.
  Source: jefferyZhan/Griffon Vision-R1 visionr1_qwen.py (by a digest).
  """

  low: float = ranged(0.5, -1.0, 1.0)  # first stage
  high: float = ranged(0.75, -1.0, 1.0)
  later_low: float = ranged(0.75, -1.0, 1.0)  # second stage
  later_high: float = ranged(0.9, -1.0, 1.0)
  recall_low: float = ranged(0.5, 0.0, 1.0)
  recall_high: float = ranged(0.75, 0.0, 1.0)
  switch: int = ranged(1500, 0, static=True)  # rollouts of the first stage
  reads = {
    'giou_0_B': _OVERLAP,
    'giou_1_B': _OVERLAP,
    'giou_2_B': _OVERLAP,
    'num_boxes_B': 'true boxes of the prompt, from 1 to 3',
  }

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No rollout has been seen."""
    del num_prompts
    return {'rollouts': jnp.zeros(())}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)

    def read(name: str) -> Array:
      return row_inputs.read(traj, name, self.reads[name])

    overlap_BM = jnp.stack([read(f'giou_{m}_B') for m in range(3)], axis=1)
    matched_BM = overlap_BM >= -1.0
    later = state['rollouts'] >= self.switch
    low = jnp.where(later, self.later_low, self.low)
    high = jnp.where(later, self.later_high, self.high)
    value_BM = jnp.where(matched_BM, _threshold(overlap_BM, low, high), 0.0)
    count_B = matched_BM.sum(1)
    precision_B = value_BM.sum(1) / jnp.maximum(count_B, 1)
    found_B = (matched_BM & (overlap_BM > low)).sum(1)
    share_B = found_B / jnp.maximum(read('num_boxes_B'), 1.0)
    recall_B = _threshold(share_B, self.recall_low, self.recall_high)
    recall_B = jnp.where(found_B > 0, recall_B, 0.0)
    state = {'rollouts': state['rollouts'] + 1.0}
    return CreditOut(reward_B + precision_B + recall_B, state)


def _threshold(x: Array, low: Array | float, high: Array | float) -> Array:
  """T(x; low, high)."""
  return jnp.where(x < low, 0.0, jnp.where(x > high, 1.0, x))
