"""Tokens that train the policy, or the values, where a guide writes some."""

import jax.numpy as jnp

from rl_jax.checks import chosen
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight

READS = {
  'prefix_B': 'tokens before the cut of a row',
  'finished_by_guide_B': '1 on rows whose tokens after the cut a guide wrote',
}


@piece
class GuidedTokens(Weight):
  """w_t = 1 before the cut for the policy and after it for the values.

  Only of rows that a guide has finished; all tokens of other rows count. On
  losses [B, T] of the role; the denominators keep the tokens. Both weights of a
  row add up to 1 at every token.
  Source: AggreVaTeD of "Learning to Generate Better Than Your LLM";
  Cornell-RL/tril aggrevated.py (by a digest).
  """

  trains: str = chosen('policy', ('policy', 'value'))
  per_token = True
  reads = READS

  @property
  def weighs(self) -> tuple[str, ...]:
    """The role, and regularizers with the policy."""
    return ('value',) if self.trains == 'value' else ('policy', 'regularizer')

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    prefix_B, guided_B = (
      row_inputs.read(ctx.traj, key, meaning) for key, meaning in READS.items()
    )
    place_1T = jnp.arange(ctx.traj.mask_BT.shape[1])[None]
    before_BT = place_1T < prefix_B[:, None]
    wanted_BT = before_BT if self.trains == 'policy' else ~before_BT
    weight_BT = jnp.where(guided_B[:, None] > 0, wanted_BT, True)
    return LossOut(weight_BT.astype(jnp.float32), {})
