"""Critic pre-training: the policy waits until values have been learned."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss, Weight
from rl_jax.types import Array


@piece
class CriticFirst(Weight):
  """w_t = 0 in the first `steps` optimizer steps, then 1; values always count.

  On losses [B, T] of the roles policy and regularizer. By default the value
  head shares the model, which its loss moves; the paper's critic is its own
  model, initialised from the reward model: ModelSource.critic='own' and
    value_from.
  State: the steps taken.
  Source: "Secrets of RLHF in Large Language Models Part I: PPO".
  """

  steps: int = ranged(50, 0, static=True)  # ours
  weighs = ('policy', 'regularizer')
  per_token = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if no loss trains values."""
    method = context.method
    if not any(isinstance(loss, ValueLoss) for loss in method.losses):
      raise ValueError('CriticFirst needs a loss of role "value": ValueClip()')

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No step has been taken."""
    del num_prompts
    return {'steps': jnp.zeros(())}

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T], metrics and the next state."""
    taken = ctx.state['steps']
    weight = (taken >= self.steps).astype(jnp.float32)
    weight_BT = jnp.full_like(ctx.traj.mask_BT, weight)
    return LossOut(
      weight_BT, {'policy/trained': weight}, {'steps': taken + 1.0}
    )
