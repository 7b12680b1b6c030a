"""Holds the mean entropy of the policy at a target."""

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class EntropyTarget(Regularizer):
  """L = coef |mean H - target|, the mean over the trained tokens, in nats.

  The gradient has one size, whatever the distance, and is 0 at the target.
  Source: "Secrets of RLHF in Large Language Models Part I: PPO"; OpenLMLab/
  MOSS-RLHF ppo_trainer.py (entropy_clip), where it is off.
  """

  coef: float = ranged(1e-3, 0.0)  # per nat
  target: float = ranged(0.5, 0.0)  # nats a token; ours
  needs = ('entropy',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    mean = masked_mean(ctx.stats['entropy'], loss_mask(ctx.traj))
    gap = mean - self.target
    # The derivative of |x| at 0 is 0 here.
    sign = jax.lax.stop_gradient(jnp.sign(gap))
    return LossOut(self.coef * sign * gap, {'policy/entropy_gap': gap})
