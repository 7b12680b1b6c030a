"""The likelihood of observations: the policy learns what environments say."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import OBSERVATION_LOGP, masked_mean, places
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.pieces.statistics.observation_logp import ObservationLogp


@piece
class ObservationLoss(Regularizer):
  """L = -coef mean log pi(o_t | x, y_<t) over tokens of kind ENVIRONMENT.

  A scalar: the mean is over the observations of rows that are trained, 0 where
  a minibatch has none. What `reset` says is the prompt, and not learned.
  Source: this code.
  """

  coef: float = ranged(0.1, 0.0)  # ours
  aggregation: Any = None  # a scalar loss is not aggregated
  per_token = True
  needs = (ObservationLogp(),)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if no environment says anything, or it repeats."""
    task, rollout = context.task, context.rollout
    if rollout is None:
      return
    if rollout.turns is None:
      raise ValueError(
        f'method.losses: ObservationLoss learns observations, but '
        f'{type(task).__name__} has no episodes (rollout.turns = null)'
      )
    if task.traits.rewrites:
      raise ValueError(
        'method.losses: ObservationLoss learns observations, but those of '
        f'{type(task).__name__} repeat what was said and done'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    logp_BT = ctx.stats[OBSERVATION_LOGP]
    chex.assert_equal_shape([logp_BT, traj.mask_BT])
    trained_B1 = (traj.weight_B != 0).astype(jnp.float32)[:, None]
    nll = -masked_mean(logp_BT, places(OBSERVATION_LOGP, traj) * trained_B1)
    return LossOut(self.coef * nll, {'train/observation_nll': nll})
