"""Scores of responses by value heads, without gradient and without logits."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.learning.final_values import closed, final_values, token_values
from rl_jax.learning.pairwise_reward import win_rates
from rl_jax.learning.statistics import Forward
from rl_jax.models.reward_source import RewardModel
from rl_jax.pieces.ops.masking import last_token
from rl_jax.types import Array, Trajectories

STEP_SCORES = 'step_score_BT'  # see pieces.row_inputs


@dataclasses.dataclass(frozen=True)
class Scorer:
  """A reward model as a run computes it.

  step_ids: tokens that end a step. separator, eos_ids: between two responses,
  and at their end. closing: what a chat template writes behind the end token.
  """

  source: RewardModel
  forward: Forward
  step_ids: tuple[int, ...] = ()
  separator: tuple[int, ...] = ()
  eos_ids: tuple[int, ...] = ()
  closing: tuple[int, ...] = ()

  def __call__(self, params: Any, traj: Trajectories) -> dict[str, Array]:
    """(V - center) / scale [B] by name; of steps STEP_SCORES [B, T], too."""
    found = {}
    if self.source.separator:
      value_B = win_rates(
        *(self.forward, params, traj, self.separator, self.eos_ids)
      )
    elif self.source.steps == 'none':
      whole = closed(traj, self.closing, self.eos_ids)
      weights = self.source.head_weights
      value_B = final_values(self.forward, params, whole, weights)
    else:
      value_BT = token_values(self.forward, params, traj)
      end_BT = step_ends(traj, jnp.array(self.step_ids, jnp.int32))
      value_B = over_steps(value_BT, end_BT, self.source.steps)
      score_BT = jax.nn.sigmoid(value_BT)
      found[STEP_SCORES] = jnp.where(end_BT > 0, score_BT, -1.0)
    value_B = (value_B - self.source.center) / self.source.scale
    return {self.source.name: value_B, **found}


def learned_rewards(
  scorers: tuple[Scorer, ...], params: dict[str, Any], traj: Trajectories
) -> dict[str, Array]:
  """{name: score [B]}, STEP_SCORES of the first model of steps.

  params: of each model, by name.
  """
  found = {}
  for one in scorers:
    found = {**one(params[one.source.name], traj), **found}
  return found


def step_ends(traj: Trajectories, step_ids: Array) -> Array:
  """1 on the tokens of step_ids, which end steps, [B, T].

  A row without one is one step, which its last token ends.
  """
  end_BT = traj.mask_BT * jnp.isin(traj.response_BT, step_ids)
  ended_B1 = (end_BT > 0).any(axis=1, keepdims=True)
  later_BT = jnp.cumsum(traj.mask_BT[:, ::-1], axis=1)[:, ::-1]
  last_BT = traj.mask_BT * (later_BT == 1)
  return jnp.where(ended_B1, end_BT, last_BT)


def over_steps(value_BT: Array, end_BT: Array, how: str) -> Array:
  """Product, least or last of sigmoid(value) where end_BT is 1, [B]."""
  logp_BT = jax.nn.log_sigmoid(jnp.where(end_BT > 0, value_BT, 0.0))
  if how == 'last':
    return jnp.exp(last_token(logp_BT, end_BT))
  logp_BT = jnp.where(end_BT > 0, logp_BT, 0.0)
  return jnp.exp(logp_BT.min(axis=1) if how == 'min' else logp_BT.sum(axis=1))
