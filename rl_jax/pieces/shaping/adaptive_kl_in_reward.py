"""KL in the reward with a coefficient that holds the divergence at a target."""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.divergences import ESTIMATORS, kl_estimate
from rl_jax.pieces.ops.masking import masked_mean, on_tokens
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array


@piece
class AdaptiveKLInReward(Shaping):
  """KLInReward of level 'token', with the coefficient beta as its state.

    r_t = 1[t = last] R - beta k(logp_old, logp_ref)_t on policy tokens, then
    beta <- beta (1 + gain clip(mean k / target - 1, -limit, limit))

  once a rollout; the mean is over its valid sampled rows, of the sum of k over
  the policy tokens of a row; without such a row beta stays. No gradient. gain 0
  is KLInReward.
  Source: "Fine-Tuning Language Models from Human Preferences", reconstructed;
  start, target and gain, 128 rows over a horizon of 10000, are those of Okapi
  (nlp-uoregon/Okapi rl_training.py, by a digest of the code).
  """

  start: float = ranged(0.1, 0.0, open_low=True)  # reward per nat
  target: float = ranged(6.0, 0.0, open_low=True)  # nats a response
  gain: float = ranged(0.0128, 0.0, 1.0)  # a rollout
  limit: float = ranged(0.2, 0.0, 1.0, open_high=True)  # beta stays above 0
  estimator: str = chosen('k1', ESTIMATORS)
  needs = ('logp', 'logp_ref')

  def init(self, num_prompts: int) -> dict[str, Array]:
    """The coefficient."""
    del num_prompts
    return {'beta': jnp.asarray(self.start, jnp.float32)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    kl_BT = kl_estimate(traj.logp_old_BT, traj.logp_ref_BT, self.estimator)
    kl_BT = kl_BT * traj.mask_BT
    counts_B = traj.valid_B * row_inputs.sampled_B(traj)
    error = masked_mean(kl_BT.sum(axis=1), counts_B) / self.target - 1.0
    error = jnp.clip(error, -self.limit, self.limit)
    # Without rows the divergence is undefined, not 0.
    error = jnp.where(counts_B.sum() > 0, error, 0.0)
    beta = ctx.state['beta']
    reward_BT = on_tokens(reward, traj.mask_BT) - beta * kl_BT
    return CreditOut(reward_BT, {'beta': beta * (1.0 + self.gain * error)})
