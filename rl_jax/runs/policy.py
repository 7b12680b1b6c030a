"""The policy of a run: its model, tokenizer and sharded parameters."""

import dataclasses
import os
from typing import Any

from absl import logging
import jax

from rl_jax import randomness
from rl_jax.models import critic as critic_lib
from rl_jax.models import lora, spec, transformer
from rl_jax.models import params as params_lib
from rl_jax.models import platform as platform_lib
from rl_jax.models.files import model_dir
from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.models.source import ModelSource
from rl_jax.models.tokenizer import CharTokenizer, HFTokenizer
from rl_jax.records.checkpoints import checkpointer
from rl_jax.runs import directory, fingerprints, saving
from rl_jax.runs.directory import CONFIG_FILE
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.platform import Platform

# In the work directory of a run: model.json and tokenizer of its policy.
DESCRIPTION = 'policy'


@dataclasses.dataclass(frozen=True)
class Policy:
  """A model on a mesh: trainable and frozen parts of its parameters."""

  model: transformer.ModelConfig
  tokenizer: Any
  trainable: Any
  frozen: Any

  @property
  def params(self) -> Any:
    """The whole tree that model functions take."""
    return {**self.frozen, **self.trainable}


def load(
  source: ModelSource, task: Any, seed: int, mesh: jax.sharding.Mesh
) -> Policy:
  """Loads or initialises the policy, each parameter straight to its devices.

  With LoRA only the adapters and the value head are trainable.
  """
  key = randomness.purpose_key(jax.random.key(seed), randomness.INIT)
  saved, params = None, {}
  if source.path is not None:
    saved, params, tokenizer = load_checkpoint(
      source.path, mesh, param_dtype=source.param_dtype
    )
    model = saved
  elif source.config is None:
    raise ValueError('model.path or model.config must be given')
  else:
    tokenizer = task_tokenizer(task)
    model = _with_vocabulary(source.config, tokenizer)
  platform, spans = Platform.of_mesh(mesh), mesh_lib.spans(mesh)
  model = _resolved(source, model, saved, platform, spans)
  if source.value_from is not None:
    params |= _critic(source.value_from, model, mesh)
  if critic_lib.has_own(model) and 'model' in params:
    params = {'critic': critic_lib.copied(params)} | params
  # A head or adapters that the source does not have start fresh.
  params |= params_lib.init_missing(model, params, key, mesh)
  params = {name: params[name] for name in transformer.specs(model)}
  params = params_lib.cast(model, params)
  trainable, frozen = params_lib.split_trainable(model, params)
  return Policy(
    model=model, tokenizer=tokenizer, trainable=trainable, frozen=frozen
  )


def _critic(path, model, mesh):
  """Value head, and layers if it has its own, of another model.

  Raises ValueError if it has none that fit.
  """
  other, params, _ = load_checkpoint(path, mesh)
  found = {'value_head': params.get('value_head')}
  if critic_lib.has_own(model):
    layers = critic_lib.params_of(params, other)
    if other.lora_rank and not critic_lib.has_own(other):
      layers = lora.merge(dict(params), other)
    found['critic'] = critic_lib.copied(layers)

  def shapes(tree):
    return jax.tree.map(lambda x: x.shape, tree)

  specs = transformer.specs(model)
  for name, tree in found.items():
    needed = shapes(spec.abstract(specs[name]))
    if shapes(tree) != needed:
      what = 'a value head' if name == 'value_head' else 'layers'
      raise ValueError(
        f'model.value_from = {path!r} has {what} of shape {shapes(tree)}, the '
        f'policy needs {needed}'
      )
  return found


def planned_model(
  source: ModelSource, task: Any, platform: Platform, spans: int = 1
) -> transformer.ModelConfig | None:
  """The model that `load` would build, without its weights; None: unknown.

  A path that does not exist yet is planned for by source.config, if given; a
  GGUF file has its shape in its tensors. spans: of the mesh, mesh.spans.
  """
  model = saved = None
  if source.path is None:
    if source.config is not None:
      model = _with_vocabulary(source.config, task_tokenizer(task))
  elif os.path.exists(source.path):
    model = saved = saved_model(source.path)
  else:
    model = source.config
  if model is None:
    return None
  return _resolved(source, model, saved, platform, spans)


def saved_model(path: str) -> transformer.ModelConfig | None:
  """The shape of a run's or another model; None: it is in its weights only."""
  if not os.path.exists(os.path.join(path, CONFIG_FILE)):
    return model_dir.read_config(path)
  described = _description(path)
  if described is not None:
    return described[0]
  config = directory.saved_config(path)
  return planned_model(config.model, config.task, Platform.of_process())


def _with_vocabulary(model, tokenizer):
  return dataclasses.replace(model, vocab_size=tokenizer.vocab_size)


def _resolved(source, model, saved, platform, spans):
  """The model with the source's choices, and those of the platform."""
  return platform_lib.resolve(
    source.applied_to(model, saved),
    source.compute_dtype,
    source.attention,
    platform=platform,
    spans=spans,
  )


def check(path: str | None) -> None:
  """Raises ValueError if the path is neither a work directory nor a model."""
  if path is not None and not os.path.exists(os.path.join(path, CONFIG_FILE)):
    model_dir.loader_of(path)


def load_checkpoint(
  source: str,
  mesh: jax.sharding.Mesh,
  step: int | None = None,
  param_dtype: str | None = None,
) -> tuple[transformer.ModelConfig, Any, Any]:
  """(model, params, tokenizer) of a work directory of training or a model.

  Of a work directory: the newest valid checkpoint, or that of iteration step,
  in the dtype of its run. param_dtype: of a model's weights; default: as saved.
  """
  if not os.path.exists(os.path.join(source, CONFIG_FILE)):
    if step is not None:
      raise ValueError(
        f'{source} is not a work directory of training: it has no step {step}'
      )
    dtypes = {} if param_dtype is None else {'param_dtype': param_dtype}
    model, params, tokenizer = model_dir.load_any(source, mesh, **dtypes)
    model = platform_lib.resolve(
      model, platform=Platform.of_mesh(mesh), spans=mesh_lib.spans(mesh)
    )
    return model, params, tokenizer
  config = directory.saved_config(source)
  policy = _abstract_policy(source, config, mesh)
  saver = checkpointer.Checkpointer(saving.newest_of(source, step))
  abstract = checkpointer.abstract_tree({'state': {'params': policy.trainable}})
  restored = saver.restore(abstract, step, partial=True)
  saver.close()
  if restored is None:
    raise ValueError(f'{source} holds no checkpoint yet')
  params = {**policy.frozen, **restored.tree['state']['params']}
  return policy.model, params, policy.tokenizer


def _comparable(model, tokenizer):
  """Both, with the backend as text, since backends have no equality."""
  if isinstance(tokenizer, HFTokenizer):
    text = tokenizer.backend.to_str()
    tokenizer = dataclasses.replace(tokenizer, backend=text)
  return model, tokenizer


def describe(policy: Policy, workdir: str) -> None:
  """Writes what reading a checkpoint needs besides: model and tokenizer.

  Of several processes process 0 writes it, again only if it has changed.
  """
  path = os.path.join(workdir, DESCRIPTION)

  def write():
    saved = model_dir.load_description(path)
    if saved is not None and _comparable(*saved) == _comparable(
      policy.model, policy.tokenizer
    ):
      return
    try:
      model_dir.save_description(path, policy.model, policy.tokenizer)
    except (TypeError, OSError) as error:
      logging.warning(
        '%s is not written (%s): evaluation and export will need the model and '
        'the task that the run began with',
        path,
        error,
      )

  processes.on_main(write)


def _description(workdir):
  return model_dir.load_description(os.path.join(workdir, DESCRIPTION))


def _abstract_policy(workdir, config, mesh):
  """The policy of a run; what its checkpoints hold may be shapes only."""
  described, source = _description(workdir), config.model
  if described is not None and not described[0].lora_rank:
    model, tokenizer = described
    model = platform_lib.resolve(
      model,
      source.compute_dtype,
      source.attention,
      platform=Platform.of_mesh(mesh),
      spans=mesh_lib.spans(mesh),
    )
    shapes = params_lib.shapes(model, mesh)
    trainable, frozen = params_lib.split_trainable(model, shapes)
    return Policy(
      model=model, tokenizer=tokenizer, trainable=trainable, frozen=frozen
    )
  _check_base(workdir, config)
  return load(source, config.task, config.seed, mesh)


def _check_base(workdir, config):
  """Raises ValueError if the weights below the trained ones are not there."""
  path = config.model.path
  if path is not None and not os.path.exists(path):
    what = (
      'holds only adapters'
      if config.model.lora_rank
      else 'has no description of its model'
    )
    raise ValueError(
      f'{workdir} {what}: the model that it trained is read from '
      f'{os.path.abspath(path)}, which does not exist. Put it back there, or '
      'make a symbolic link to where it is'
    )
  recorded = fingerprints.read(workdir)
  edited = [
    line
    for line in fingerprints.changes(
      recorded, fingerprints.of(config, recorded)
    )
    if line.startswith('model.path')
  ]
  if edited and config.model.lora_rank:
    raise ValueError(
      f'{workdir} holds adapters of a model that has changed since:\n  '
      + '\n  '.join(edited)
    )


def task_tokenizer(task: Any) -> Any:
  """The tokenizer of a procedural task, of characters or pieces."""
  alphabet = task.alphabet
  if alphabet is None:
    raise ValueError(
      f'{type(task).__name__} has no alphabet: set model.path to '
      'a model with a tokenizer'
    )
  kind = PieceTokenizer if isinstance(alphabet, tuple) else CharTokenizer
  return kind(alphabet)
