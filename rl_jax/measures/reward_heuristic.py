"""A value head as the heuristic of decoding.look_ahead."""

from typing import Any

import jax.numpy as jnp

from rl_jax.decoding import start_trajectories
from rl_jax.decoding.look_ahead import Heuristic
from rl_jax.learning.final_values import final_values
from rl_jax.learning.statistics import Forward
from rl_jax.models import transformer
from rl_jax.types import PAD, POLICY, Array, Trajectories


def reward_heuristic(model: transformer.ModelConfig, params: Any) -> Heuristic:
  """h = the value head after the last token that a row has looked ahead.

  Of a scalar reward model, or of the critic of a run, whose value of a text
  that is not over is the reward to be expected. Its inputs are `prompts`. Each
  call reads whole rows again, without a cache.
  Raises: ValueError without a value head.
  """
  if not model.value_head:
    raise ValueError('the model of a heuristic has no value head')

  def heuristic(inputs, response_BT, length_B):
    traj = rows(inputs, response_BT, length_B)
    return final_values(Forward(model=model), params, traj)

  return heuristic


def rows(inputs: Any, response_BT: Array, length_B: Array) -> Trajectories:
  """Responses of the policy, of any length, as a heuristic scores them.

  inputs: those of `prompts`, a row for each response.
  """
  at_1T = jnp.arange(response_BT.shape[1])[None]
  own_BT = at_1T < length_B[:, None]
  return start_trajectories(
    inputs['prompt_NP'],
    inputs['mask_NP'],
    length_B,
    group_size=1,
    max_response_tokens=response_BT.shape[1],
  ).replace(
    response_BT=response_BT,
    length_B=length_B,
    kind_BT=jnp.where(own_BT, POLICY, PAD),
    mask_BT=own_BT.astype(jnp.float32),
  )


def prompts(traj: Trajectories) -> dict[str, Any]:
  """The inputs of the heuristic for the rows of look_ahead."""
  return {'prompt_NP': traj.prompt_NP, 'mask_NP': traj.prompt_mask_NP}
