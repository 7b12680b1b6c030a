"""The last response to each prompt, for drafts: arrays of a checkpoint."""

import jax.numpy as jnp
import numpy as np

from rl_jax.decoding.drafts.lookup import NOTHING
from rl_jax.types import Array, Trajectories

Memory = dict[str, Array]


def empty(prompts: int, max_tokens: int) -> dict[str, np.ndarray]:
  """No responses. id_M: the prompt of each; response_MT: NOTHING after it."""
  return {
    'id_M': np.full(prompts, NOTHING, np.int32),
    'response_MT': np.full((prompts, max_tokens), NOTHING, np.int32),
  }


def recalled(memory: Memory, prompt_id_N: Array) -> Array:
  """The last responses [N, T] to prompts; NOTHING for new ones."""
  place_N = prompt_id_N % memory['id_M'].shape[0]
  known_N = memory['id_M'][place_N] == prompt_id_N
  return jnp.where(known_N[:, None], memory['response_MT'][place_N], NOTHING)


def remembered(memory: Memory, traj: Trajectories) -> Memory:
  """The memory with the first response of each group.

  Of several groups in one place the last one counts.
  """
  size, G = memory['id_M'].shape[0], traj.group_size
  place_N = traj.prompt_id_N % size
  number_N = jnp.arange(traj.num_prompts)
  later_NN = number_N[:, None] < number_N[None]
  replaced_N = ((place_N[:, None] == place_N[None]) & later_NN).any(axis=1)
  place_N = jnp.where(replaced_N, size, place_N)  # past the last one: dropped
  position_1T = jnp.arange(traj.response_BT.shape[1])[None]
  response_NT = jnp.where(
    position_1T < traj.length_B[::G, None], traj.response_BT[::G], NOTHING
  )

  def put(x, new):
    return x.at[place_N].set(new, mode='drop')

  return {
    'id_M': put(memory['id_M'], traj.prompt_id_N),
    'response_MT': put(memory['response_MT'], response_NT),
  }
