"""Sampling as `generate` does it, by speculative decoding."""

import dataclasses
import functools
from typing import Any, NamedTuple

from rl_jax import models
from rl_jax.decoding.drafts import draft_memory
from rl_jax.decoding.drafts.draft_lookup import LookupDecoder, context_of
from rl_jax.decoding.drafts.draft_model import ModelDecoder
from rl_jax.decoding.drafts.settings import DraftModel, Drafts
from rl_jax.decoding.generate import (
  Drafting,
  Limits,
  decoded_rows,
  filled,
  prepare_weights,
)
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.types import Array, Trajectories


@dataclasses.dataclass(frozen=True)
class DraftSource:
  """Where drafts come from; model: the shape of a DraftModel."""

  drafts: Drafts
  model: models.ModelConfig | None = None


class Kept(NamedTuple):
  """The arrays that drafts are made of.

  memory: of draft_memory, or {}. model_params: those of a DraftModel, with
  `head` if there is an acceptance head.
  """

  memory: draft_memory.Memory
  model_params: Any = None


def generate_with_drafts(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  kept: Kept,
  *,
  source: DraftSource,
  limits: Limits,
) -> tuple[Trajectories, draft_memory.Memory, Array]:
  """generate by speculative decoding: the same tokens (tier E2).

  Of a DraftModel that is coupled by rejection the tokens have the distribution
  of those of generate.

  Returns:
    traj, the memory with its responses, and int32[3]: forward passes of rows
    after their prompts, the tokens that these passes added, and the tokens
    that were drafted for them.
  """
  memory = kept.memory
  if isinstance(source.drafts, DraftModel):
    drafting = _by_model(source.drafts, source.model, kept.model_params, traj)
  else:
    drafting = _by_lookup(source.drafts, memory, traj)
  rows = decoded_rows(params, cfg, traj, key, sampling, limits, drafting)
  traj = filled(traj, rows)
  if memory:
    memory = draft_memory.remembered(memory, traj)
  assert rows.passes_B3 is not None
  return traj, memory, rows.passes_B3.sum(axis=0)


def _by_lookup(drafts, memory, traj) -> Drafting:
  """By what occurs before in the row or in the last response."""
  previous_NT = None
  if memory:
    previous_NT = draft_memory.recalled(memory, traj.prompt_id_N)

  def make(shared, context_NC, begun):
    del shared
    decoder = functools.partial(
      LookupDecoder, drafts=drafts, context_NC=context_NC
    )
    return decoder, begun

  prompts = (traj.prompt_NP, traj.prompt_mask_NP)
  context_NC = context_of(drafts, *prompts, previous_NT)
  return Drafting(make, by_prompt=context_NC)


def _by_model(drafts, model, params, traj) -> Drafting:
  """By another model."""

  def make(shared, own, begun):
    weights, head = shared
    decoder = functools.partial(
      ModelDecoder,
      drafts=drafts,
      model=model,
      model_weights=weights,
      head=head,
    )
    return decoder, [*begun, own]

  prompts = (traj.prompt_NP, traj.prompt_mask_NP)
  return Drafting(
    make,
    shared=(prepare_weights(params, model), params.get('head')),
    by_prompt=models.prefill(params, model, *prompts),
  )
