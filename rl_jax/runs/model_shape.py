"""The ModelConfig that a source will give, without reading any weights."""

import dataclasses
import os
from typing import Any

from rl_jax import serialization
from rl_jax.models import platform, transformer
from rl_jax.models.files import model_dir
from rl_jax.models.source import ModelSource
from rl_jax.runs import directory
from rl_jax.runs import policy as policy_lib


def of(
  source: ModelSource, task: Any, spans: int = 1
) -> transformer.ModelConfig | None:
  """The model that policy.load would build; None if nothing says.

  A path that does not exist yet is planned for by source.config, if given; a
  GGUF file has its shape in its tensors. spans: of the mesh, mesh.spans.
  """
  model = saved = None
  if source.path is None:
    if source.config is not None:
      size = policy_lib.task_tokenizer(task).vocab_size
      model = dataclasses.replace(source.config, vocab_size=size)
  elif os.path.exists(os.path.join(source.path, directory.CONFIG_FILE)):
    with open(os.path.join(source.path, directory.CONFIG_FILE)) as file:
      config = serialization.from_json(file.read())
    model = saved = of(config.model, config.task)
  elif os.path.exists(source.path):
    model = saved = model_dir.read_config(source.path)
  else:
    model = source.config
  if model is None:
    return None
  return platform.resolve(
    source.applied_to(model, saved),
    source.compute_dtype,
    source.attention,
    spans=spans,
  )
