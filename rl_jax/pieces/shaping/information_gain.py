"""The reward of a thought is what it adds to the likelihood of a text."""

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping

READS = {
  'target_logp_B': 'log-probability of the text after the thought of the row',
  'plain_logp_B': 'that of the same text without it, under the reference',
}


@piece
class InformationGain(Shaping):
  """R_k = coef (log pi_old(x | c_k) - log pi_ref(x)), in nats.

  x is the text that follows the prompt, c_k the thought. Replaces the reward.
  Source: "RLP: Reinforcement as a Pretraining Objective"; NVlabs/RLP README.
  """

  coef: float = ranged(1.0, 0.0)  # reward per nat
  needs = ('logp', 'logp_ref')
  reads = READS

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    _, traj = ctx.per_row()
    with_B, without_B = (
      row_inputs.read(traj, key, meaning) for key, meaning in READS.items()
    )
    return CreditOut(self.coef * (with_B - without_B))
