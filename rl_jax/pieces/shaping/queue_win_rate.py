"""The reward of a sample is how often it wins against earlier samples."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_sum, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array


@piece
class QueueWinRate(Shaping):
  """R_i = mean over the queue of its prompt of 1, 1/2, 0 as r_i >, =, < r_q.

  The queue holds the rewards of the last `size` samples of earlier rollouts; it
  is empty at first, and R is then 1/2. No gradient. State: rewards and whether
  each was valid, [prompts, size], the latest first; of a prompt that is twice
  in a rollout one group is kept.
  Source: "A Minimaximalist Approach to Reinforcement Learning from Human
  Feedback" (SPO with a queue of trajectories; reconstructed).
  """

  size: int = ranged(16, 1, static=True)

  def init(self, num_prompts: int) -> dict[str, Array]:
    """Empty queues."""
    empty = jnp.zeros((num_prompts, self.size), jnp.float32)
    return {'reward': empty, 'held': empty}

  def check_win_rates(
    self, path: str, pairwise: list[str], others: list[str]
  ) -> None:
    """Raises ValueError: win rates inside a group say nothing across groups."""
    del others
    raise ValueError(
      f'{path} compares rewards of different iterations, and {pairwise[0]} '
      'compares responses of one group: take WinRate(), or a reward model or '
      'judge of single responses'
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_equal_shape([reward_B, traj.valid_B])
    new = {
      'reward': by_group(reward_B, traj.group_size),
      'held': by_group(traj.valid_B, traj.group_size),
    }
    id_N = traj.prompt_id_N
    # An id beyond the table has an empty queue.
    old = {
      k: x.at[id_N].get(mode='fill', fill_value=0) for k, x in state.items()
    }
    gap_NGQ = new['reward'][:, :, None] - old['reward'][:, None]
    held_N1Q = old['held'][:, None]
    wins_NG = masked_sum(0.5 * (1.0 + jnp.sign(gap_NGQ)), held_N1Q, axis=2)
    count_N1 = old['held'].sum(1, keepdims=True)
    rate_NG = jnp.where(count_N1 > 0, safe_divide(wins_NG, count_N1), 0.5)
    pushed = {
      k: jnp.concatenate([new[k], old[k]], axis=1)[:, : self.size] for k in new
    }
    state = {k: state[k].at[id_N].set(pushed[k], mode='drop') for k in state}
    return CreditOut(rate_NG.ravel(), state)
