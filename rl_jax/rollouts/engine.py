"""Samples responses of one model on one mesh."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rl_jax.models import transformer
from rl_jax.rollouts.generate import generate, start_trajectories
from rl_jax.rollouts.sampling import SamplingConfig
from rl_jax.runtime import compilation, processes
from rl_jax.runtime import mesh as mesh_lib


@dataclasses.dataclass(frozen=True)
class Engine:
  """Two functions of one shape of groups; built by make_engine.

  start: (prompt_NP, mask_NP, id_N, first_serial, policy_version) -> empty
    trajectories, rows split over the mesh.
  generate: jitted; (params, traj=, key=) -> trajectories, replicated.
  """

  start: Callable
  generate: Any
  mesh: jax.sharding.Mesh


def make_engine(
  model: transformer.ModelConfig,
  sampling: SamplingConfig,
  *,
  group_size: int,
  max_response_tokens: int,
  mesh: jax.sharding.Mesh,
  slots: int | None = None,
) -> Engine:
  """Jits both; shapes compile on first use. slots: see generate."""
  return Engine(
    start=_make_start(mesh, group_size, max_response_tokens),
    generate=jax.jit(
      functools.partial(
        generate,
        cfg=model,
        sampling=sampling,
        max_new_tokens=max_response_tokens,
        slots=slots,
      ),
      out_shardings=mesh_lib.replicated(mesh),
      compiler_options=compilation.options(),
    ),
    mesh=mesh,
  )


def _make_start(mesh, group_size, max_response_tokens):
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
