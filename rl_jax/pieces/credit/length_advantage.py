"""ADORA: groups whose right answers are not the longer ones count less."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_mean, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.pieces.row_inputs import policy_tokens_B, right_B
from rl_jax.types import Array


@piece
class LengthAdvantageScale(Credit):
  """A_k * (1 if longest right > mean wrong length, else scale).

  Wrong rows of max_tokens or more are left out of the mean. Without a right row
  the group is scaled; with no wrong row left it is kept. Lengths are compared
  without what the environment said, which counts towards max_tokens only.
  Source: "ADORA: Training Reasoning Models with Dynamic Advantage Estimation";
  ShadeCloak/ADORA core_algos.py.
  """

  scale: float = ranged(0.1, 0.0)  # lambda of the paper; 1 changes nothing
  correct_above: float = 0.5  # see row_inputs.right_B
  # Truncated responses are this long.
  max_tokens: float = ranged(3900.0, 0.0, open_low=True)
  min_group_size = 2

  def idle(self, max_response_tokens: int, vocab_size: int) -> str:
    """Why no response is taken as truncated, or an empty text."""
    if max_response_tokens >= self.max_tokens:
      return ''
    return (
      'truncated responses are not left out: they are shorter than '
      f'max_tokens = {self.max_tokens:g}'
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()

    def grouped(x_B: Array):
      return by_group(x_B, traj.group_size)

    length_NG = grouped(policy_tokens_B(traj, traj.length_B))
    whole_NG = grouped(traj.length_B)
    valid_NG = grouped(traj.valid_B) > 0
    right_NG = grouped(right_B(traj, self.correct_above))
    wrong_NG = valid_NG & ~right_NG & (whole_NG < self.max_tokens)
    longest_N = jnp.where(right_NG, length_NG, -jnp.inf).max(1)
    mean_N = masked_mean(length_NG, wrong_NG.astype(jnp.float32), axis=1)
    mean_N = jnp.where(wrong_NG.any(1), mean_N, -jnp.inf)
    factor_N = jnp.where(longest_N > mean_N, 1.0, self.scale)
    return CreditOut(ungroup(grouped(credit_B) * factor_N[:, None]))
