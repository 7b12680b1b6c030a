"""BCO: a binary classifier of responses whose logit is the implicit reward."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean, masked_sum, safe_divide
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array


@piece
class BCO(Loss):
  """L = mean over labelled rows of -ls(+-(beta D - delta)).

  + where the label is 1, - where it is 0; D is the sum of logp - logp_ref over
  the row's trained tokens. delta, without gradient, is the mean of beta D over
  all labelled rows since the start of the run, this minibatch included.
  Source: TRL (bco_pair of dpo_trainer.py in versions with RunningMoments, whose
  mean is over batches; read in copies of the file), without the density ratio
  for shifted prompts. Later versions have no delta: BCOPair.
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  from_data = True
  labelled = True
  needs = ('logp_ref',)
  off_policy = True

  def init(self, num_prompts: int) -> dict[str, Array]:
    """The mean and the number of the rows so far."""
    del num_prompts
    zero = jnp.zeros((), jnp.float32)
    return {'mean': zero, 'count': zero}

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar, metrics and the next state."""
    traj, state = ctx.traj, ctx.state
    label_B = row_inputs.read(traj, 'chosen_B')
    ratio_B = masked_sum(
      ctx.stats['logp'] - traj.logp_ref_BT, traj.mask_BT, axis=1
    )
    score_B, weight_B = self.beta * ratio_B, row_weight(traj) * (label_B >= 0)
    live_B = (weight_B != 0).astype(jnp.float32)
    count = state['count'] + live_B.sum()
    new = masked_sum(score_B - state['mean'], live_B)
    delta = state['mean'] + safe_divide(new, count)
    delta = jax.lax.stop_gradient(delta)
    sign_B = jnp.where(label_B > 0.5, 1.0, -1.0)
    loss_B = -jax.nn.log_sigmoid(sign_B * (score_B - delta))
    total = (jnp.where(live_B > 0, loss_B, 0.0) * weight_B).sum()
    metrics = {
      'preference/score_chosen': masked_mean(score_B, live_B * (label_B > 0.5)),
      'preference/score_rejected': masked_mean(
        score_B, live_B * (label_B <= 0.5)
      ),
      'preference/reference_point': delta,
    }
    loss = total / jnp.maximum(live_B.sum(), 1.0)
    return LossOut(loss, metrics, {'mean': delta, 'count': count})
