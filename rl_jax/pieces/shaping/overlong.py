"""A soft penalty for responses that come near the length limit."""

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class OverlongPenalty(Shaping):
  """R + coef * min((max_tokens - buffer_tokens - length) / buffer_tokens, 0).

  No penalty up to max_tokens - buffer_tokens, then linear down to -coef at
  max_tokens. Lengths are tokens, not characters: with counts='policy' those of
  the response that the environment has not said, with 'all' the replies of
  tools as well. Single responses have no such replies.
  Source: DAPO, section 3.4; verl recipe reward_manager/dapo.py, which counts
  all.
  """

  # The limit on response tokens.
  max_tokens: float = ranged(20480.0, 0.0, open_low=True)
  buffer_tokens: float = ranged(4096.0, 0.0, open_low=True)
  coef: float = ranged(1.0, 0.0)  # in units of the reward
  counts: str = chosen('policy', ('policy', 'all'))

  def idle(self, max_response_tokens: int, vocab_size: int) -> str:
    """Why no response can be changed, or an empty text."""
    free = self.max_tokens - self.buffer_tokens
    if max_response_tokens > free:
      return ''
    return (
      f'up to max_tokens - buffer_tokens = {free:g} tokens there is no penalty'
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    length_B = traj.length_B.astype(jnp.float32)
    if self.counts == 'policy':
      length_B = row_inputs.policy_tokens_B(traj, traj.length_B)
    excess_B = length_B - (self.max_tokens - self.buffer_tokens)
    return CreditOut(
      reward_B + self.coef * jnp.minimum(-excess_B / self.buffer_tokens, 0.0)
    )
