"""SPIRAL: the return minus the running mean of its role in the game."""

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array


@piece
class RoleBaseline(Credit):
  """A = R - b_p with b_p of before the rollout, p the role of the row.

    b_p <- decay^n b_p + (1 - decay^n) mean R     over the n valid rows of p

  For n = 1 the update of the authors; all games of a rollout see the same b, so
  that their order changes nothing. Role: extras['role_B'] modulo `roles` (with
  1 there is one baseline for all), 0 where no role is given.
  State: b of each role, from 0.
  Source: "SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via
  Multi-Agent Multi-Turn Reinforcement Learning"; spiral-rl/spiral, where each
  actor has its own means, which are not saved.
  """

  decay: float = ranged(0.95, 0.0, 1.0)
  roles: int = ranged(2, 1, static=True)
  reads = {'role_B': 'number of the role that the row plays, from 0'}

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No game has been seen."""
    del num_prompts
    return {'mean': jnp.zeros(self.roles)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)
    zero_B = jnp.zeros_like(reward_B)
    role_B = traj.extras.get('role_B', zero_B).astype(jnp.int32) % self.roles
    valid_B = (traj.valid_B > 0).astype(jnp.float32)
    known_B = jnp.where(valid_B > 0, reward_B, 0.0)

    def total(x_B: Array):
      return jax.ops.segment_sum(x_B * valid_B, role_B, num_segments=self.roles)

    count_R = total(jnp.ones_like(known_B))
    mean_R = safe_divide(total(known_B), count_R)
    kept_R = self.decay**count_R
    after_R = kept_R * state['mean'] + (1.0 - kept_R) * mean_R
    return CreditOut(reward_B - state['mean'][role_B], {'mean': after_R})
