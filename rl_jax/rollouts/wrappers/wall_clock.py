"""Episodes as a collector sees them that stops after a fixed time."""

from typing import Any

import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.types import Array, Trajectories


@piece
class WallClock(RolloutWrapper):
  """Keeps an episode with the chance shortest / its duration.

  Workers that play for a time W end about W / d episodes of duration d, so that
  quick actions are seen too often:

    P(row is kept) = min_j d_j / d_i,  d the sum over the turns of a row

  over the valid rows of the rollout. Rows that are not kept are invalid and
  weigh nothing. With equal durations all are kept. `credit.DurationWeight`
  undoes what this does to the frequencies of episodes of one turn.
  Source: "Reinforcement Learning for Machine Learning Engineering Agents", from
  notes; a clock that runs while agents work is replaced by these draws.
  """

  @property
  def by_time(self) -> bool:
    """See RolloutWrapper."""
    return True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if rows are not episodes."""
    rollout = context.rollout
    if rollout is not None and rollout.turns is None:
      raise ValueError(
        'method.rollout: WallClock reads how long the turns of episodes took: '
        'set rollout.turns, and take a task with episodes'
      )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(the rows that were finished in time, no further rounds)."""
    del done
    return sampler.run(kept_by_time, traj, sampler.key), []


def kept_by_time(traj: Trajectories, key: Array) -> Trajectories:
  """The rows with `valid` and `weight` 0 of those that are not kept.

  Rows are kept without a record of durations, too.
  """
  if traj.turns is None or traj.turns.duration_BK is None:
    return traj
  duration_B = (turn_view(traj).played_BK * traj.turns.duration_BK).sum(1)
  valid_B = (traj.valid_B > 0) & (duration_B > 0)
  least = jnp.where(valid_B, duration_B, jnp.inf).min()
  chance_B = least / jnp.where(valid_B, duration_B, jnp.inf)
  keys_B = randomness.row_keys(
    randomness.purpose_key(key, randomness.CUTS), traj.row_id_B2
  )
  drawn_B = randomness.token_uniform(keys_B, jnp.zeros(len(keys_B), jnp.int32))
  kept_B = jnp.where(valid_B, drawn_B < chance_B, True).astype(jnp.float32)
  return traj.replace(
    valid_B=traj.valid_B * kept_B, weight_B=traj.weight_B * kept_B
  )
