"""Sampling as `generate` does it, by speculative decoding."""

import functools
from typing import Any

from rl_jax import models
from rl_jax.rollouts import draft_memory
from rl_jax.rollouts.draft_lookup import LookupDecoder, context_of
from rl_jax.rollouts.draft_model import ModelDecoder
from rl_jax.rollouts.drafts import DraftModel, Drafts
from rl_jax.rollouts.generate import decoded_rows, filled, prepare_weights
from rl_jax.rollouts.sampling import SamplingConfig
from rl_jax.types import Array, Trajectories


def generate_with_drafts(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  memory: draft_memory.Memory,
  model_params: Any = None,
  *,
  drafts: Drafts,
  model: models.ModelConfig | None = None,
  max_new_tokens: int,
  slots: int | None = None,
) -> tuple[Trajectories, draft_memory.Memory, Array]:
  """generate by speculative decoding: the same tokens (tier E2).

  Of a DraftModel that is coupled by rejection the tokens have the distribution
  of those of generate.

  memory: of draft_memory, or {}. model, model_params: those of DraftModel;
  the latter with `head` if there is an acceptance head.

  Returns:
    traj, the memory with its responses, and int32[3]: forward passes of rows
    after their prompts, the tokens that these passes added, and the tokens
    that were drafted for them.
  """
  if isinstance(drafts, DraftModel):
    source = _by_model(drafts, model, model_params, traj)
  else:
    source = _by_lookup(drafts, memory, traj)
  rows = decoded_rows(
    *(params, cfg, traj, key, sampling),
    max_new_tokens=max_new_tokens,
    slots=slots,
    **source,
  )
  traj = filled(traj, rows)
  if memory:
    memory = draft_memory.remembered(memory, traj)
  assert rows.passes_B3 is not None
  return traj, memory, rows.passes_B3.sum(axis=0)


def _by_lookup(drafts, memory, traj) -> dict[str, Any]:
  """Arguments of decoded_rows."""
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
  return {'make': make, 'by_prompt': context_NC}


def _by_model(drafts, model, params, traj) -> dict[str, Any]:
  """The same."""

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
  return {
    'make': make,
    'shared': (prepare_weights(params, model), params.get('head')),
    'by_prompt': models.prefill(params, model, *prompts),
  }
