"""The policy's own certainty as a reward: no verifier, no labels."""

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.pieces.statistics.certainty import Certainty


@piece
class SelfCertainty(Shaping):
  """R_k = coef * mean_t KL(uniform || pi_old(. | prefix of t)), in nats.

    KL(uniform || pi) = -1/V sum_v log(V pi(v))

  The mean is over trained tokens. Replaces the reward.
  Source: backprop07/Self-Certainty confidence_list.py; as a reward "Learning
  to Reason without External Rewards".
  """

  coef: float = ranged(1.0)  # reward per nat
  needs = (Certainty(),)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    certainty_BT = row_inputs.read(traj, 'self_certainty')
    return CreditOut(
      self.coef * masked_mean(certainty_BT, traj.mask_BT, axis=1)
    )
