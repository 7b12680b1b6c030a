"""Samples responses of one model on one mesh."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rl_jax.decoding import turn_decode
from rl_jax.decoding.beam_search import beam_search
from rl_jax.decoding.drafts.settings import Drafts
from rl_jax.decoding.drafts.speculative import (
  DraftSource,
  DraftState,
  GenerateWithDrafts,
  generate_with_drafts,
)
from rl_jax.decoding.generate import Limits, generate, start_trajectories
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slot_engine import SlotPrograms, make_programs
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import transformer
from rl_jax.models.gradient_norms import embedding_norms
from rl_jax.runtime import compilation, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform


@dataclasses.dataclass(frozen=True)
class EngineConfig:
  """The settings of an engine's calls; slots and cache_tokens: see generate.

  cache_tokens of episodes: see slot_decode.places_of_shard.
  group_size: rows of a prompt. max_response_tokens: T of rows.
  new_tokens: that a call adds to a row at most; None: max_response_tokens.
  turns: limits of episodes, which have slots (slot_decode); None: there are
  none.
  speculative: where drafts come from; None: plain decoding.
  beams: search of this width in place of draws, without slots and drafts.
  """

  group_size: int
  max_response_tokens: int
  slots: int | None = None
  cache_tokens: int | None = None
  turns: TurnConfig | None = None
  new_tokens: int | None = None
  speculative: Drafts | None = None
  beams: int | None = None

  @property
  def limits(self) -> Limits:
    """The limits of a call."""
    new_tokens = self.new_tokens or self.max_response_tokens
    return Limits(new_tokens, self.slots, self.cache_tokens)


@dataclasses.dataclass(frozen=True)
class Engine:
  """Two functions of one shape of groups; built by make_engine.

  start: (prompt_NP, mask_NP, id_N, first_serial, policy_version) -> empty
    trajectories, rows split over the mesh.
  generate: jitted; (params, traj=, key=) -> trajectories, replicated.
  slots, finish, opponents: of episodes, None without a TurnConfig. slots: the
    programs of their turns. finish, opponents: jitted, see turn_decode; finish:
    (traj, table, finished_B, turn_BT, turns, role_B, context_BT) ->
    trajectories.
  variant: (further transforms, new_tokens, group_size) -> the engine with them
    after its own; the others as in EngineConfig, None: as they are.
  drafts: what speculative decoding keeps from call to call.
  norms: jitted; (params, traj) -> norms of gradients by the embeddings [B].
  """

  start: Callable
  generate: Any
  mesh: jax.sharding.Mesh
  drafts: DraftState
  slots: SlotPrograms | None = None
  finish: Any = None
  opponents: Any = None
  variant: Any = None
  norms: Any = None


def make_engine(
  model: transformer.ModelConfig,
  sampling: SamplingConfig,
  config: EngineConfig,
  mesh: jax.sharding.Mesh,
  draft_model: tuple[transformer.ModelConfig, Any] | None = None,
) -> Engine:
  """Jits all; shapes compile on first use.

  draft_model: shape and parameters of drafts.DraftModel.
  """
  if config.beams is not None:
    config = dataclasses.replace(config, speculative=None)
  shape, params = draft_model or (None, None)
  state = DraftState(
    config.speculative, config.max_response_tokens, mesh, params
  )
  return _engine(model, sampling, config, mesh, shape, state)


def _engine(model, sampling, config, mesh, draft_shape, drafts) -> Engine:
  """drafts: their state, which variants share."""

  @functools.cache
  def variant(transforms, fewer=None, group_size=None):
    more = (*sampling.transforms, *transforms)
    return _engine(
      model,
      dataclasses.replace(sampling, transforms=more),
      dataclasses.replace(
        config,
        new_tokens=fewer or config.new_tokens,
        group_size=group_size or config.group_size,
        turns=None,
      ),
      mesh,
      draft_shape,
      drafts,
    )

  episodes = {}
  if config.turns is not None:
    episodes = _episodes(model, sampling, config, mesh)
  return Engine(
    start=_make_start(mesh, config.group_size, config.max_response_tokens),
    generate=_make_generate(model, sampling, config, mesh, draft_shape, drafts),
    mesh=mesh,
    variant=variant,
    drafts=drafts,
    norms=_make_norms(model),
    **episodes,
  )


@functools.cache
def _make_norms(model):
  """One program for all engines of a model."""
  return jax.jit(functools.partial(embedding_norms, model))


def on_own_mesh(engine: Engine) -> Engine:
  """The engine for calls while another mesh is in force.

  Its rows stay on its devices; params are there, the key may be elsewhere.
  """
  mesh = engine.mesh

  def start(*arguments):
    with jax.set_mesh(mesh):
      return engine.start(*arguments)

  def generate(params, *, traj, key):
    with jax.set_mesh(mesh):
      key = processes.put(key, mesh_lib.replicated(mesh))
      return engine.generate(params, traj=traj, key=key)

  def norms(params, traj):
    with jax.set_mesh(mesh):
      return engine.norms(params, traj)

  return dataclasses.replace(
    engine, start=start, generate=generate, norms=norms
  )


def _make_generate(model, sampling, config, mesh, draft_shape, drafts):
  """The jitted function of the kind that the configuration asks for."""
  limits = config.limits
  if config.beams is not None:
    function = functools.partial(
      beam_search, max_new_tokens=limits.max_new_tokens, beams=config.beams
    )
  elif config.speculative is not None:
    source = DraftSource(config.speculative, draft_shape)
    drafted = dataclasses.replace(limits, cache_tokens=None)
    function = functools.partial(
      generate_with_drafts, source=source, limits=drafted
    )
  else:
    function = functools.partial(generate, **dataclasses.asdict(limits))
  jitted = jax.jit(
    functools.partial(function, cfg=model, sampling=sampling),
    out_shardings=mesh_lib.replicated(mesh),
    compiler_options=compilation.options(Platform.of_mesh(mesh)),
  )
  if config.speculative is None:
    return jitted
  return GenerateWithDrafts(jitted, drafts)


def _episodes(model, sampling, config, mesh) -> dict[str, Any]:
  """The functions of episodes."""
  return {
    'slots': make_programs(
      model, sampling, config.turns, mesh, config.slots, config.cache_tokens
    ),
    'finish': jax.jit(
      turn_decode.finish, out_shardings=mesh_lib.replicated(mesh)
    ),
    'opponents': jax.jit(
      turn_decode.opponents, out_shardings=mesh_lib.rows(mesh)
    ),
  }


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
