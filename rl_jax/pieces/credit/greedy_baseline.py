"""ReMax: the reward of the greedy response as the baseline."""

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class GreedyBaseline(Credit):
  """A = R - reward of the greedy response to the same prompt; no gradient.

  Over no group: a single sample has a baseline that does not depend on it. R is
  the return of the row [B], or of tokens [B, T] what a piece before
  (DiscountedReturn) gives, 0 outside the mask. Reads extras 'greedy_reward_B'
  (see rollouts/wrappers/greedy_response.py), which is not shaped: neither KL
  nor a change of scale is in it. Raises ValueError where it is missing.
  Source: "ReMax: A Simple, Effective, and Efficient Reinforcement Learning
  Method for Aligning Large Language Models"; verl core_algos.py (remax).
  """

  reads = {
    'greedy_reward_B': 'reward of the greedy response to the prompt; '
    'filled by method.rollout=GreedyResponse()'
  }

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B], or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    ((key, meaning),) = self.reads.items()
    baseline_B = row_inputs.read(traj, key, meaning)
    if credit.ndim == 1:
      return CreditOut(jnp.where(traj.valid_B > 0, credit - baseline_B, 0.0))
    live_BT = (traj.mask_BT > 0) & (traj.valid_B > 0)[:, None]
    return CreditOut(jnp.where(live_BT, credit - baseline_B[:, None], 0.0))
