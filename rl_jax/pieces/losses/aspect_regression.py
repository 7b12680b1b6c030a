"""Value heads that learn the labels of several aspects of a response."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import last_token, masked_mean, safe_divide
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class AspectRegression(Loss):
  """Mean over the labels of a batch of (V_a(prompt and response) - label_a)^2.

  V_a is value head a after the last trained token. Labels that are missing
  count nowhere.
  Source: the reward model of "Optimizing Safe and Aligned Language Generation:
  A Multi-Objective GRPO Approach", from the abstract; reconstructed.
  """

  num_aspects: int = ranged(2, 1, static=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  from_data = True
  needs = ('value_heads_after',)

  @property
  def num_values(self) -> int:
    """Outputs of the value head that it needs."""
    return self.num_aspects

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar.

    Raises: ValueError if the data have another number of aspects.
    """
    traj = ctx.traj
    label_BA = row_inputs.read(traj, 'aspect_label_BA')
    if label_BA.shape[1] != self.num_aspects:
      raise ValueError(
        f'AspectRegression.num_aspects = {self.num_aspects}, but the data have '
        f'labels of {label_BA.shape[1]}'
      )
    known_BA = (label_BA > row_inputs.NO_LABEL).astype(jnp.float32)
    weight_BA = known_BA * row_weight(traj)[:, None]
    heads = range(self.num_aspects)
    value_BTH = ctx.stats['value_heads_after']
    value_BA = jnp.stack(
      [last_token(value_BTH[..., a], traj.mask_BT) for a in heads], axis=1
    )
    error_BA = jnp.where(known_BA > 0, value_BA - label_BA, 0.0)
    on_BA = (weight_BA > 0).astype(jnp.float32)
    loss = safe_divide((error_BA**2 * weight_BA).sum(), on_BA.sum())
    return LossOut(
      loss,
      {
        f'value/error_{a}': masked_mean(jnp.abs(error_BA[:, a]), on_BA[:, a])
        for a in heads
      },
    )
