"""PPO-max's ptx term: the likelihood of recorded responses."""

import chex

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class PretrainingLoss(Regularizer):
  """L = -coef mean logp_t over the trained tokens of rows from data only.

  Reads extras['logged_B'], which rollout.recorded_prompts > 0 fills; 0 where a
  minibatch has no such row. With weights.SampledRows the other losses leave
  these rows out.
  Source: "Training language models to follow instructions with human feedback"
  (PPO-ptx); OpenLMLab/MOSS-RLHF ppo_trainer.py (ppo_pretrain_loss), where it is
  off.
  """

  coef: float = ranged(0.1, 0.0)  # ours
  from_data = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    stats, traj = ctx.stats, ctx.traj
    chex.assert_equal_shape([stats['logp'], traj.mask_BT])
    recorded_B = 1.0 - row_inputs.sampled_B(traj)
    mask_BT = loss_mask(traj) * recorded_B[:, None]
    nll = -masked_mean(stats['logp'], mask_BT)
    return LossOut(self.coef * nll, {'train/nll_recorded': nll})
