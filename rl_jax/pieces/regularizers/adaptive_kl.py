"""A KL term whose coefficient holds the divergence near a target."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.divergences import ESTIMATORS, kl_estimate
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.types import Array


@piece
class AdaptiveKL(Regularizer):
  """l_t = beta k(logp_t, logp_ref_t), with beta as its state.

    beta <- beta (1 + gain clip(mean k / target - 1, -limit, limit))

  after every optimizer step; the mean is over the trained tokens of the
  minibatch, without which beta stays. No gradient through beta.
  Source: "Fine-Tuning Language Models from Human Preferences" (gain 0.1, limit
  0.2), there with the sum over a response and in the reward; reconstructed, the
  paper's text was not at hand.
  """

  start: float = ranged(0.1, 0.0, open_low=True)  # beta at first, per nat
  target: float = ranged(0.01, 0.0, open_low=True)  # nats a token
  gain: float = ranged(0.1, 0.0)
  limit: float = ranged(0.2, 0.0)
  estimator: str = chosen('k3', ESTIMATORS)
  aggregation: Any = None  # overrides the method's
  per_token = True  # beta is that of the step before
  needs = ('logp_ref',)

  def init(self, num_prompts: int) -> dict[str, Array]:
    """The coefficient."""
    del num_prompts
    return {'beta': jnp.asarray(self.start, jnp.float32)}

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T], metrics and the next state."""
    traj = ctx.traj
    logp_BT = ctx.stats['logp']
    chex.assert_equal_shape([logp_BT, traj.logp_ref_BT, traj.mask_BT])
    kl_BT = kl_estimate(logp_BT, traj.logp_ref_BT, self.estimator)
    mask_BT = loss_mask(traj)
    error = masked_mean(kl_BT, mask_BT) / self.target - 1.0
    error = jnp.clip(error, -self.limit, self.limit)
    # Without tokens the divergence is undefined, not 0.
    error = jnp.where(mask_BT.sum() > 0, error, 0.0)
    beta = ctx.state['beta']
    metrics = {'policy/kl_ref': kl_BT, 'policy/kl_coef': beta}
    return LossOut(
      beta * kl_BT, metrics, {'beta': beta * (1.0 + self.gain * error)}
    )
