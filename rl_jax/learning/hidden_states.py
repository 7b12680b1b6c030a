"""The run of a model over responses, and the hidden states that it gives."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from rl_jax import types
from rl_jax.models import transformer
from rl_jax.types import Array, Trajectories


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forward:
  """The static settings by which scores and updates run a model.

  microbatches: memory only, never mathematics. group_rows: rows of a group in
  one microbatch, or None, the whole group; memory only, too. capacity: slots
  for the fed tokens of these rows, or None (packing.capacity); speed and memory
  only.
  """

  model: transformer.ModelConfig
  temperature: float = 1.0
  microbatches: int = 1
  group_rows: int | None = None
  capacity: int | None = None


def states_before(forward: Forward, params: Any, traj: Trajectories) -> Array:
  """Hidden states [B, T, D] that predict each response token, 0 at padding."""
  tokens = transformer.Tokens(
    *_tokens(traj), traj.context_BT, _inputs(params, traj)
  )
  return transformer.states(params, forward.model, tokens, forward.capacity)


def routed_states(
  forward: Forward, params: Any, traj: Trajectories
) -> tuple[Array, Array]:
  """The same, and what routers do there, see experts.routing.

  Raises: ValueError with inputs_BTF, beside which routers are not read.
  """
  if traj.inputs_BTF is not None:
    raise ValueError(
      'Trajectories.inputs_BTF: statistics of routers are of tokens only'
    )
  return transformer.forward_and_routing(
    params,
    forward.model,
    *_tokens(traj),
    capacity=forward.capacity,
    context_BT=traj.context_BT,
  )


def _tokens(traj: Trajectories) -> tuple[Array, Array, Array, Array]:
  """Prompts and responses with their masks."""
  on_BT = (traj.kind_BT != types.PAD).astype(jnp.float32)
  return traj.prompt_NP, traj.prompt_mask_NP, traj.response_BT, on_BT


def _inputs(params: Any, traj: Trajectories) -> Array | None:
  """Returns what is added to the embeddings of responses, [B, T, D]."""
  if traj.inputs_BTF is None:
    return None
  if 'inputs' not in params:
    raise ValueError(
      "Trajectories.inputs_BTF needs params['inputs'], a map of shape "
      f'[{traj.inputs_BTF.shape[-1]}, width]'
    )
  return traj.inputs_BTF @ params['inputs']


def states_around(
  forward: Forward, params: Any, traj: Trajectories
) -> tuple[Array, Array]:
  """The same, and the states that have read the token, each [B, T, D].

  Each row has one more place, so that its last token is read, too.
  """

  def one_more(x_BT: Array, value: int):
    pad = ((0, 0), (0, 1), (0, 0))[: x_BT.ndim]
    return jnp.pad(x_BT, pad, constant_values=value)

  kind_BT = jnp.roll(one_more(traj.kind_BT, types.POLICY), 1, axis=1)
  context_BT, capacity = traj.context_BT, forward.capacity
  inputs_BTF = traj.inputs_BTF
  if context_BT is not None:
    context_BT = one_more(context_BT, 0)
  if inputs_BTF is not None:
    inputs_BTF = one_more(inputs_BTF, 0)
  if capacity is not None:
    capacity += traj.group_size
  hidden_BSD = states_before(
    dataclasses.replace(forward, capacity=capacity),
    params,
    traj.replace(
      response_BT=one_more(traj.response_BT, 0),
      kind_BT=kind_BT,
      context_BT=context_BT,
      inputs_BTF=inputs_BTF,
    ),
  )
  on_BT1 = (traj.kind_BT != types.PAD)[..., None]
  before_BTD, after_BTD = hidden_BSD[:, :-1], hidden_BSD[:, 1:]
  return jnp.where(on_BT1, before_BTD, 0), jnp.where(on_BT1, after_BTD, 0)
