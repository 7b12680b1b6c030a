"""The load-balancing loss of mixtures of experts."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class RouterBalance(Regularizer):
  """L = coef E sum_e f_e P_e; coef k if E experts are used equally.

    f_e  mean of 1 where expert e is one of the k that are taken, no gradient
    P_e  mean of the router's probability of e

  Means over all layers and the trained tokens of the minibatch, of the states
  that predict them, so that microbatches change nothing. The metric
  train/expert_load_max is max_e f_e E / k, 1 where all are used equally.
  Source: Switch Transformers (2101.03961), eq. 4 to 6; transformers'
  load_balancing_loss_func (Qwen3-MoE, OLMoE), which counts prompts too.
  """

  coef: float = ranged(1e-3, 0.0)
  needs = ('router_probs', 'router_taken')

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    stats, traj = ctx.stats, ctx.traj
    probs_BTE, taken_BTE = stats['router_probs'], stats['router_taken']
    chex.assert_equal_shape([probs_BTE, taken_BTE])
    chex.assert_equal_shape_prefix([probs_BTE, traj.mask_BT], 2)
    mask_BTE = jnp.broadcast_to(loss_mask(traj)[..., None], probs_BTE.shape)
    share_E = masked_mean(taken_BTE, mask_BTE, axis=(0, 1))
    prob_E = masked_mean(probs_BTE, mask_BTE, axis=(0, 1))
    balance = len(share_E) * (share_E * prob_E).sum()
    load_E = len(share_E) * share_E / jnp.maximum(share_E.sum(), 1e-9)
    return LossOut(
      self.coef * balance,
      {
        'train/router_balance': balance,
        'train/expert_load_max': load_E.max(),
      },
    )
