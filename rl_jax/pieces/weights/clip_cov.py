"""Clip-Cov: a few tokens of high covariance lose their gradient."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_center
from rl_jax.pieces.ops.ratios import is_clipped, log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight
from rl_jax.randomness import row_token_uniform


@piece
class ClipCovDrop(Weight):
  """Removes a random subset of high-covariance tokens from the policy loss.

    cov_t    = (A_t - mean A) (logp_t - mean logp)
    eligible = {t: low < cov_t < high, not cut by the PPO clip}
    weight_t = 0 on max(floor(fraction * tokens), 1) eligible tokens, else 1

  The draw is uniform without replacement; means and counts are over the trained
  tokens of the minibatch; dropped tokens stay in the loss's denominator.
  Source: "The Entropy Mechanism of Reinforcement Learning for Reasoning
  Language Models", Clip-Cov; PRIME-RL/Entropy-Mechanism-of-RL core_algos.py,
  which ranks per microbatch.
  """

  # Of the trained tokens.
  fraction: float = ranged(2e-4, 0.0, 1.0, open_low=True)
  low: float = 1.0  # nats times advantage
  high: float = 5.0
  # None: those of the method's PPOClip.
  clip_low: float | None = ranged(None, 0.0, 1.0)
  clip_high: float | None = ranged(None, 0.0)

  def resolve(self, method: Any) -> 'ClipCovDrop':
    """Takes limits that are None from the method's PPOClip.

    Raises ValueError if there is none, or if given limits differ from its own.
    """
    for loss in method.losses:
      limits = loss.offers.get('token_clip')
      if limits is None:
        continue
      given = {'clip_low': self.clip_low, 'clip_high': self.clip_high}
      if all(x is None or x == limits[name] for name, x in given.items()):
        return self.replace(**limits)
    raise ValueError(
      'ClipCovDrop passes over tokens that PPOClip has cut: give PPOClip '
      f'clip_low = {self.clip_low} and clip_high = {self.clip_high}, or leave '
      'these fields of ClipCovDrop out'
    )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    assert self.clip_low is not None and self.clip_high is not None
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    mask_BT = loss_mask(traj)
    cov_BT = masked_center(adv_BT, mask_BT) * masked_center(logp_BT, mask_BT)
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    cut_BT = is_clipped(ratio_BT, adv_BT, self.clip_low, self.clip_high)
    inside_BT = (cov_BT > self.low) & (cov_BT < self.high)
    eligible_BT = (mask_BT > 0) & inside_BT & ~cut_BT
    count = jnp.maximum(jnp.floor(self.fraction * (mask_BT > 0).sum()), 1.0)
    # Drawn from the counter of each row: independent of padding and row order.
    draw_BT = row_token_uniform(ctx.key, traj.row_id_B2, logp_BT.shape[1])
    priority = jnp.where(eligible_BT, draw_BT, jnp.inf).ravel()
    rank_BT = jnp.argsort(jnp.argsort(priority)).reshape(cov_BT.shape)
    drop_BT = eligible_BT & (rank_BT < count)
    return LossOut(
      jnp.where(drop_BT, 0.0, 1.0),
      {
        'policy/dropped_fraction': drop_BT,
      },
    )
