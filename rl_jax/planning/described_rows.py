"""Extras of rows by tasks and rollout pieces, for plans without a rollout."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.config import ExperimentConfig
from rl_jax.pieces import row_inputs
from rl_jax.types import Trajectories


def with_rewards(config: ExperimentConfig, traj: Trajectories) -> Trajectories:
  """Rows with the components that weights, pieces and reward models name."""
  names = {*config.task.reward_weights}
  names |= {model.name for model in config.reward_models}
  for _, piece in config.method.pieces():
    names |= {*piece.components}
  return traj.replace(
    reward_B=traj.valid_B, rewards=dict.fromkeys(sorted(names), traj.valid_B)
  )


def lowered(
  lower: Callable[[Trajectories], Any], traj: Trajectories, num_values: int = 1
) -> jax.stages.Lowered:
  """lower(traj), of rows with what pieces find missing.

  Only a rollout shows whether the task or the rollout piece fills it in: a plan
  takes it that one does, as it must in a run.

  Args:
    lower: lowers a program for rows.
    traj: shapes of the rows.
    num_values: outputs of the value head that the method reads, each of which
      learns one aspect of a response where rows have labels of aspects.

  Raises:
    MissingInputError: what is missing has no value for each row or token.
  """
  while True:
    try:
      return lower(traj)
    except row_inputs.MissingInputError as error:
      name, _, axes = error.key.rpartition('_')
      if axes in ('B', 'NM'):  # `read` makes them of components
        more = {'rewards': {**traj.rewards, name: traj.valid_B}}
      elif axes in ('BT', 'BA'):
        rows, tokens = traj.mask_BT.shape
        shape = jax.ShapeDtypeStruct(
          (rows, tokens if axes == 'BT' else num_values),
          jnp.float32,
          sharding=traj.mask_BT.sharding,
        )
        more = {'extras': {**traj.extras, error.key: shape}}
      else:
        raise
      traj = traj.replace(**more)
