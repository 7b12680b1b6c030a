"""Scores of responses by value heads, without gradient and without logits."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.learning.final_values import final_values, token_values
from rl_jax.learning.pairwise_reward import win_rates
from rl_jax.learning.statistics import Forward
from rl_jax.models.reward_source import RewardModel
from rl_jax.pieces.ops.masking import last_token
from rl_jax.types import Array, Trajectories


@dataclasses.dataclass(frozen=True)
class Scorer:
  """A reward model as a run computes it.

  step_ids: tokens that end a line. separator, eos_ids: between two responses,
  and at their end.
  """

  source: RewardModel
  forward: Forward
  step_ids: tuple[int, ...] = ()
  separator: tuple[int, ...] = ()
  eos_ids: tuple[int, ...] = ()

  def __call__(self, params: Any, traj: Trajectories) -> Array:
    """(V - center) / scale, [B]."""
    if self.source.separator:
      value_B = win_rates(
        *(self.forward, params, traj, self.separator, self.eos_ids)
      )
    elif self.source.steps == 'none':
      value_B = final_values(self.forward, params, traj)
    else:
      value_BT = token_values(self.forward, params, traj)
      value_B = over_steps(
        value_BT, traj, np.array(self.step_ids, np.int32), self.source.steps
      )
    return (value_B - self.source.center) / self.source.scale


def learned_rewards(
  scorers: tuple[Scorer, ...], params: dict[str, Any], traj: Trajectories
) -> dict[str, Array]:
  """{name: score [B]}; params: of each model, by name."""
  return {
    one.source.name: one(params[one.source.name], traj) for one in scorers
  }


def over_steps(
  value_BT: Array, traj: Trajectories, step_ids: Array, how: str
) -> Array:
  """Product, least or last of sigmoid(value) at the ends of steps, [B].

  A step ends with one of step_ids; a row without one is one step.
  """
  end_BT = traj.mask_BT * jnp.isin(traj.response_BT, step_ids)
  ended_B1 = (end_BT > 0).any(axis=1, keepdims=True)
  later_BT = jnp.cumsum(traj.mask_BT[:, ::-1], axis=1)[:, ::-1]
  last_BT = traj.mask_BT * (later_BT == 1)
  end_BT = jnp.where(ended_B1, end_BT, last_BT)
  logp_BT = jax.nn.log_sigmoid(jnp.where(end_BT > 0, value_BT, 0.0))
  if how == 'last':
    return jnp.exp(last_token(logp_BT, end_BT))
  logp_BT = jnp.where(end_BT > 0, logp_BT, 0.0)
  return jnp.exp(logp_BT.min(axis=1) if how == 'min' else logp_BT.sum(axis=1))
