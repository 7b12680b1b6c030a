"""Puts prompts on the devices as empty trajectories, rows split over a mesh."""

from collections.abc import Callable
import functools

import jax
import numpy as np

from rl_jax.rollouts.generate import start_trajectories
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.types import Trajectories


def make_start(
  mesh: jax.sharding.Mesh, group_size: int, max_response_tokens: int
) -> Callable[..., Trajectories]:
  """Returns start(prompt, mask, ids, first_serial, policy_version)."""
  jitted = jax.jit(
    functools.partial(
      start_trajectories,
      group_size=group_size,
      max_response_tokens=max_response_tokens,
    ),
    out_shardings=mesh_lib.rows(mesh),
  )

  def start(prompt, mask, ids, first_serial, policy_version):
    # Explicit placement: the transfer guard refuses implicit copies.
    arrays = processes.put((prompt, mask, ids), mesh_lib.rows(mesh))
    scalars = processes.put(
      (np.int32(first_serial), np.int32(policy_version)),
      mesh_lib.replicated(mesh),
    )
    return jitted(*arrays, first_serial=scalars[0], policy_version=scalars[1])

  return start
