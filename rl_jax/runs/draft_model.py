"""The draft model of speculative decoding: read and checked."""

import dataclasses
from typing import Any

import jax

from rl_jax.config import ExperimentConfig
from rl_jax.decoding.drafts import acceptance
from rl_jax.decoding.drafts.settings import DraftModel
from rl_jax.models import platform as platform_lib
from rl_jax.models import transformer
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.reward_models import check_tokens
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.platform import Platform

Loaded = tuple[transformer.ModelConfig, Any]


def load(
  config: ExperimentConfig, tokenizer: Any, mesh: jax.sharding.Mesh
) -> Loaded | None:
  """(model, parameters, with `head` if it has one); None without a draft model.

  Raises: ValueError if its tokens are not those of the policy, or if the head
    does not fit.
  """
  source = config.rollout.speculative
  if not isinstance(source, DraftModel):
    return None
  try:
    policy_lib.check(source.path)
  except (ValueError, OSError) as error:
    raise ValueError(f'draft model: {error}') from None
  model, params, other = policy_lib.load_checkpoint(source.path, mesh)
  check_tokens(f'draft model {source.path}', tokenizer, other, model.vocab_size)
  model = _resolved(config, model, Platform.of_mesh(mesh))
  names = set(transformer.specs(model)) - {'value_head'}
  params = {name: params[name] for name in sorted(names)}
  if source.head is not None:
    head = acceptance.load_head(source.head, model.width)
    params['head'] = processes.put(head, mesh_lib.replicated(mesh))
  return model, params


def planned(
  config: ExperimentConfig, platform: Platform
) -> transformer.ModelConfig | None:
  """The model without its weights; None: none, or of unknown shape."""
  source = config.rollout.speculative
  if not isinstance(source, DraftModel):
    return None
  model = policy_lib.saved_model(source.path)
  return None if model is None else _resolved(config, model, platform)


def _resolved(config, model, platform):
  """The draft model with the types and kernels of the policy."""
  own = config.model
  return platform_lib.resolve(
    dataclasses.replace(model, remat=False, value_head=False),
    own.compute_dtype,
    own.attention,
    platform=platform,
  )
