"""ToolRL: a sum of rewards whose weights move during training."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, static


@piece
class ScheduledSum(Shaping):
  """R = sum_k w_k r_k, w = first + (last - first) min(n / steps, 1).

  n: rollouts before this one, the state. Replaces the reward.
  Source: "ToolRL: Reward is All Tool Learning Needs"; qiancheng0/ToolRL
  rlla.py, by a digest: 1 of format and correctness; its dynamic variant has
  first (2, 2/3), last (1, 1) and 150 steps.
  Raises ValueError unless every component has both weights.
  """

  components: tuple[str, ...] = static(default=('format', 'correct'))
  first: tuple[float, ...] = static(default=(1.0, 1.0))
  last: tuple[float, ...] = static(default=(1.0, 1.0))
  steps: float = ranged(150.0, 0.0, open_low=True)  # rollouts

  def __post_init__(self):
    for name, weights in (('first', self.first), ('last', self.last)):
      if len(weights) != len(self.components):
        raise ValueError(
          f'ScheduledSum.{name} = {weights} must have one number for each of '
          f'components = {self.components}'
        )

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No rollout has been seen."""
    del num_prompts
    return {'rollouts': jnp.zeros(())}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj, state = ctx.credit, ctx.traj, ctx.state
    chex.assert_rank(reward_B, 1)
    share = jnp.minimum(state['rollouts'] / self.steps, 1.0)
    first_K, last_K = jnp.array(self.first), jnp.array(self.last)
    weight_K = first_K + share * (last_K - first_K)
    total_B = weight_K @ row_inputs.components(self, traj)
    return CreditOut(total_B, {'rollouts': state['rollouts'] + 1.0})
