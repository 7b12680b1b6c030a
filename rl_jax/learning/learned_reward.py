"""Scores of responses by value heads, without gradient and without logits."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.learning.final_values import closed, final_values, token_values
from rl_jax.learning.pairwise_reward import mean_wins, preferences
from rl_jax.learning.statistics import Forward
from rl_jax.models.reward_source import RewardModel
from rl_jax.pieces.ops.masking import last_token
from rl_jax.pieces.ops.rivals import BEATS, rivals
from rl_jax.types import Array, Trajectories

STEP_SCORES = 'step_score_BT'  # see pieces.row_inputs


@dataclasses.dataclass(frozen=True)
class Scorer:
  """A reward model as a run computes it.

  step_ids: tokens that end a step. separator, eos_ids: between two responses,
  and at their end. closing: what a chat template writes after the end token.
  """

  source: RewardModel
  forward: Forward
  step_ids: tuple[int, ...] = ()
  separator: tuple[int, ...] = ()
  eos_ids: tuple[int, ...] = ()
  closing: tuple[int, ...] = ()

  @property
  def compares(self) -> bool:
    """Returns whether it reads two responses in one row."""
    return bool(self.source.separator)

  def __call__(
    self, params: Any, traj: Trajectories, kind: str | None = None
  ) -> dict[str, Array]:
    """(V - center) / scale [B] by name; of steps STEP_SCORES [B, T], too.

    A model of pairs that has a weight adds BEATS [B, G]. kind: the rivals of
    rows in groups of policy and opponent (ops.rivals); None: the whole group.
    """
    found = {}
    if self.compares:
      value_B, beats_BG = self._win_rates(params, traj, kind)
      if self.source.weight:
        found[BEATS] = beats_BG
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

  def _win_rates(self, params: Any, traj: Trajectories, kind: str | None):
    """(mean over rivals [B], over each row of the group [B, G])."""
    forward, rival_GG = self.forward, None
    if kind is not None:
      rival_GG = rivals(kind, traj.group_size)
      if forward.group_rows is not None:
        # Not more rows of pairs in a microbatch than of groups of the policy.
        times = int(rival_GG.sum()) // (traj.group_size // 2) ** 2
        forward = dataclasses.replace(
          forward, microbatches=forward.microbatches * times
        )
    beats_BG = preferences(
      forward, params, traj, self.separator, self.eos_ids, rival_GG
    )
    return mean_wins(beats_BG, traj, rival_GG), beats_BG


def learned_rewards(
  scorers: tuple[Scorer, ...],
  params: dict[str, Any],
  traj: Trajectories,
  kind: str | None = None,
) -> dict[str, Array]:
  """{name: score [B]}, STEP_SCORES and BEATS of the first model that has them.

  params: of each model, by name. kind: see Scorer.
  """
  found: dict[str, Array] = {}
  for one in scorers:
    found = {**one(params[one.source.name], traj, kind), **found}
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
