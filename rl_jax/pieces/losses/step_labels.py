"""A value head that learns whether the steps of a response are right."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean, safe_divide
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array, static


@piece
class StepLabels(Loss):
  """Mean over labelled steps of l(V after the last token of the step, label).

    hard   -y ls(V) - (1 - y) ls(-V), y = 1 where the label is above threshold
    soft   (sigmoid(V) - label)^2

  Labels are those of people or judges, 0 or 1, or the fraction of continuations
  after the step that reach the answer (Monte Carlo). With truncate the steps
  after the first one whose label is at most threshold do not count. With
  every_token each token of a step has the step's label, as OPRM trains
  (Edward-Sun/easy-to-hard train_rm_pointwise.py, by a digest).
  Source: Zhang et al., "The Lessons of Developing Process Reward Models in
  Mathematical Reasoning", 2025, sections 2 and 3 (read): hard labels with
  threshold 0 are best there. Reconstructed: no training code is released.
  """

  kind: str = chosen('hard', ('hard', 'soft'))
  threshold: float = ranged(0.0, 0.0, 1.0, open_high=True)
  truncate: bool = static(default=True)
  every_token: bool = static(default=False)
  aggregation: Any = None  # a scalar loss is not aggregated
  from_data = True
  needs = ('values_after',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    label_BT = row_inputs.read(traj, 'step_label_BT')
    known_BT = (label_BT >= 0) & (traj.mask_BT > 0)
    right_BT = label_BT > self.threshold
    if self.truncate:
      wrong_BT = (known_BT & ~right_BT).astype(jnp.int32)
      known_BT &= jnp.cumsum(wrong_BT, axis=1) - wrong_BT == 0
    if self.every_token:
      label_BT = _spread(jnp.where(known_BT, label_BT, -1.0))
      right_BT = label_BT > self.threshold
      known_BT = (label_BT >= 0) & (traj.mask_BT > 0)
    known_BT = known_BT.astype(jnp.float32)
    weight_BT = known_BT * row_weight(traj)[:, None]
    value_BT = jnp.where(weight_BT > 0, ctx.stats['values_after'], 0.0)
    if self.kind == 'soft':
      loss_BT = (jax.nn.sigmoid(value_BT) - label_BT) ** 2
    else:
      loss_BT = -jax.nn.log_sigmoid(jnp.where(right_BT, value_BT, -value_BT))
    count = (weight_BT > 0).sum().astype(jnp.float32)
    same_BT = ((value_BT > 0) == right_BT).astype(jnp.float32)
    on_BT = (weight_BT > 0).astype(jnp.float32)
    return LossOut(
      safe_divide((loss_BT * weight_BT).sum(), count),
      {
        'value/step_accuracy': masked_mean(same_BT, on_BT),
        'value/step_score': masked_mean(jax.nn.sigmoid(value_BT), on_BT),
        'value/right_steps': masked_mean(right_BT.astype(jnp.float32), on_BT),
      },
    )


def _spread(label_BT: Array) -> Array:
  """The label of the step that a token is part of: the next one at or after
  it; -1 after the last step.
  """

  def earlier(next_B: Array, own_B: Array):
    label_B = jnp.where(own_B >= 0, own_B, next_B)
    return label_B, label_B

  after_B = jnp.full(len(label_BT), -1.0, label_BT.dtype)
  return jax.lax.scan(earlier, after_B, label_BT.T, reverse=True)[1].T
