"""KTO: desirable and undesirable responses against a reference point."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean, masked_sum
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array, Trajectories


@piece
class KTO(Loss):
  """L = mean over labelled rows of lambda (1 - sigmoid(+-beta (D - z0))).

  + and lambda = desirable where the label is 1, - and undesirable where it is
  0; D is the sum of logp - logp_ref over the row's trained tokens. z0, without
  gradient, is max(0, mean D) over the rows of the minibatch that hold the
  response to another prompt ('mismatched'), over the labelled rows ('batch'),
  or 0 ('zero': APO-zero for unpaired data).
  Source: TRL kto_trainer.py and HALOs KTOTrainer, by a digest of the code. They
  rotate all completions of a batch, as here for data with one response to a
  prompt; of pairs the chosen responses only are rotated here.
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  desirable: float = ranged(1.0, 0.0)
  undesirable: float = ranged(1.0, 0.0)
  baseline: str = chosen('mismatched', ('mismatched', 'batch', 'zero'))
  aggregation: Any = None  # a scalar loss is not aggregated
  from_data = True
  labelled = True
  needs = ('logp_ref',)
  off_policy = True

  @property
  def mismatched(self) -> bool:
    """Returns whether each prompt needs a row with the response to
    another one.
    """
    return self.baseline == 'mismatched'

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    label_B = row_inputs.read(traj, 'chosen_B')
    ratio_B = masked_sum(
      ctx.stats['logp'] - traj.logp_ref_BT, traj.mask_BT, axis=1
    )
    weight_B = row_weight(traj) * (label_B >= 0)
    z0 = jax.lax.stop_gradient(self._reference_point(traj, ratio_B, weight_B))
    sign_B = jnp.where(label_B > 0.5, 1.0, -1.0)
    coef_B = jnp.where(label_B > 0.5, self.desirable, self.undesirable)
    loss_B = coef_B * jax.nn.sigmoid(-sign_B * self.beta * (ratio_B - z0))
    live_B = (weight_B != 0).astype(jnp.float32)
    scores = {
      'chosen': masked_mean(ratio_B, live_B * (label_B > 0.5)),
      'rejected': masked_mean(ratio_B, live_B * (label_B <= 0.5)),
    }
    metrics = {
      f'preference/score_{n}': self.beta * x for n, x in scores.items()
    }
    metrics['preference/reference_point'] = z0
    total = (jnp.where(live_B > 0, loss_B, 0.0) * weight_B).sum()
    return LossOut(total / jnp.maximum(live_B.sum(), 1.0), metrics)

  def _reference_point(
    self, traj: Trajectories, ratio_B: Array, weight_B: Array
  ):
    if self.baseline == 'zero':
      return jnp.zeros(())
    if self.baseline == 'mismatched':
      tokens_B = (traj.mask_BT > 0).any(1)
      weight_B = tokens_B * row_inputs.read(traj, 'mismatched_B')
    live_B = (weight_B != 0).astype(jnp.float32)
    return jnp.maximum(0.0, masked_mean(ratio_B, live_B))
