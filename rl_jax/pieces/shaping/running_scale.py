"""PPO-max: rewards divided by the standard deviation of all past rewards."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import moments
from rl_jax.pieces.ops.masking import is_rounding
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, static


@piece
class RunningScale(Shaping):
  """R / (std + eps), or (R - mean) / (std + eps) if center; then clipped.

  Mean and std (ddof 1) are over the valid rewards of the sampled rows of all
  rollouts, this one included. State: count, mean, sum of squared deviations.
  Source: "Secrets of RLHF in Large Language Models Part I: PPO"; OpenLMLab/
  MOSS-RLHF utils.py (RunningMoments), ppo_trainer.py (use_reward_scaling,
  use_reward_norm, use_reward_clip).
  """

  center: bool = static(default=False)
  # Largest |R| after scaling; None: off.
  clip: float | None = ranged(None, 0.0, open_low=True)
  eps: float = ranged(1e-8, 0.0, open_low=True)  # in units of the reward

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No reward has been seen."""
    del num_prompts
    return moments.none()

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)
    valid_B = traj.valid_B * row_inputs.sampled_B(traj)
    state = moments.merged(state, reward_B, valid_B)
    mean, std = state['mean'], moments.deviation(state)
    # The std of a constant reward is rounding error: it is not divided by that.
    constant = is_rounding(std, mean)
    scale = jnp.where(constant, 1.0, std) + self.eps
    scaled_B = (reward_B - mean if self.center else reward_B) / scale
    if self.clip is not None:
      scaled_B = jnp.clip(scaled_B, -self.clip, self.clip)
    return CreditOut(scaled_B, state)
