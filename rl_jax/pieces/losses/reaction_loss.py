"""A reward model that predicts whether users react to a response."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import last_token, masked_mean
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class ReactionLoss(Loss):
  """L = mean over labelled rows of -w ls(v + log w) if 1, -ls(-v - log w) if 0.

  v is the value after the last trained token, ls the logarithm of the sigmoid,
  and w the weight of the rare reactions. A logit that fits rows of these
  weights is too large by log w; it is taken off here, so that sigmoid(v) is the
  share of reactions in the data, whatever w is. Rows without a label count
  nowhere.
  Source: "Reinforcement Learning from User Feedback" (RLUF; reconstructed: the
  abstract has a binary model of reactions, the weight is ours).
  """

  positive: float = ranged(1.0, 0.0, open_low=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  from_data = True
  labelled = True
  needs = ('values_after',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    label_B = row_inputs.read(traj, 'chosen_B')
    value_B = last_token(ctx.stats['values_after'], traj.mask_BT)
    weight_B = row_weight(traj) * (label_B >= 0)
    logit_B = value_B + jnp.log(self.positive)
    one_B = -self.positive * jax.nn.log_sigmoid(logit_B)
    loss_B = jnp.where(label_B > 0, one_B, -jax.nn.log_sigmoid(-logit_B))
    return LossOut(
      masked_mean(loss_B, weight_B),
      {
        'reaction/predicted': masked_mean(jax.nn.sigmoid(value_B), weight_B),
        'reaction/share': masked_mean((label_B > 0).astype(float), weight_B),
      },
    )
