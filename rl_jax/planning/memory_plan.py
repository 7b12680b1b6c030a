"""Bytes that one iteration keeps on a device, estimated from shapes only.

  always    parameters + reference + reward models + optimizer + rollout
  update    activations + the larger of what is held at the logits, before there
            are gradients of layers, and at the first layer
  generate  the sampler's copy of the weights + cache + scratch
  evaluate  the same of an evaluation

The first and the largest of the others must fit. Parameters, optimizer, copies
and cache are exact; gradients, activations and logits count the arrays that the
programs hold at their peak, one by one in `sizes`, of full responses: an update
that is packed needs less. tests/planning/test_memory_plan.py compares the sums
with what XLA says of the compiled programs.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.config import ExperimentConfig, evaluated_tokens, evaluations
from rl_jax.decoding.drafts.settings import PreviousResponses, in_evaluations
from rl_jax.decoding.rounding import TRAINER
from rl_jax.models import params as params_lib
from rl_jax.models import spec, transformer
from rl_jax.planning import abstract_run
from rl_jax.planning.sizes import Sizes
from rl_jax.runs import draft_model, judges, reward_models
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryPlan:
  """Bytes on one device."""

  parameters: int
  reference: int  # and every other named policy, and lagged weights
  optimizer: int
  gradients: int
  layer_gradients: int  # of a microbatch, which are not there at the logits
  activations: int  # saved for the backward pass
  layer: int  # what the backward pass holds of one layer
  logits: int
  sampler_weights: int
  cache: int
  scratch: int  # of sampling: prefill, and logits of a step
  rollout: int  # the [B, T] arrays of an iteration
  evaluation: int = 0  # cache and scratch; 0 without evaluations
  reward_models: int = 0  # their parameters
  scoring: int = 0  # of one layer of the largest of them
  draft_model: int = 0  # its parameters and sampler weights
  host_cache: int = 0  # in the memory of the host: keys of rows that wait

  @property
  def kept(self) -> int:
    """Bytes that are held from start to end of a run."""
    policies = self.parameters + self.reference + self.reward_models
    return policies + self.draft_model + self.optimizer + self.rollout

  @property
  def update(self) -> int:
    """While a minibatch is trained on."""
    passing = max(self.layer, self.logits - self.layer_gradients)
    return self.kept + self.gradients + self.activations + passing

  @property
  def generate(self) -> int:
    """While responses are sampled."""
    return self.kept + self.sampler_weights + self.cache + self.scratch

  @property
  def evaluate(self) -> int:
    """While a policy is evaluated."""
    return self.kept + self.sampler_weights + self.evaluation

  @property
  def peak(self) -> int:
    """The largest of these and of scoring by reward models."""
    scoring = self.kept + self.scoring
    return max(self.update, self.generate, self.evaluate, scoring)


def bytes_per_device(tree: Any) -> int:
  """Bytes on each device of a tree of jax.ShapeDtypeStruct with shardings."""
  return sum(_numbers(x) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def estimate(
  config: ExperimentConfig, model: transformer.ModelConfig, mesh: Any
) -> MemoryPlan:
  """The plan on a mesh, which may be abstract: nothing is allocated."""
  params = params_lib.shapes(model, mesh)
  trainable, _ = params_lib.split_trainable(model, params)
  state = abstract_run.train_state(config, trainable, mesh)
  rules = config.method.policies().values()
  copies = sum(rule.copies for rule in rules) + config.rollout.staleness
  sizes = Sizes.of(config, model, mesh)
  minibatch = config.update.minibatch_prompts or config.rollout.num_prompts
  # The sum so far in float32, and the gradient of one more microbatch.
  one = 4 * sum(map(_numbers, jax.tree.leaves(trainable)))
  layers = jax.tree.leaves(trainable.get('model', {}).get('layers', {}))
  platform = model.platform
  draft_weights, draft_cache = _draft_model_bytes(config, mesh, platform)
  kept = sizes.episodes or config.rollout.sampler_weights != TRAINER
  update = config.update
  if rows := update.minibatch_rows:
    pieces = rows // (update.microbatch_rows or rows)
  else:
    pieces = minibatch // (update.microbatch_prompts or minibatch)
    pieces *= config.rollout.group_size // sizes.group_rows
  return MemoryPlan(
    parameters=bytes_per_device(params),
    reference=copies * bytes_per_device(trainable),
    optimizer=bytes_per_device(state.opt_state),
    gradients=one * (2 if pieces > 1 else 1)
    + _held_on_tpu(model, params, trainable, sizes.gathered)
    + config.method.shifts * bytes_per_device(trainable),
    layer_gradients=4 * sum(map(_numbers, layers)),
    activations=sizes.activations(),
    layer=sizes.layer()
    + (_table_on_tpu(model, trainable, sizes) if pieces > 1 else 0),
    logits=sizes.logits(),
    sampler_weights=sizes.policies
    * sizes.played
    * (_sampler_weights(model, mesh, kept) or sizes.cut_layers()),
    cache=sizes.cache() + draft_cache,
    scratch=sizes.scratch(),
    rollout=_rollout_bytes(config, sizes.widened),
    evaluation=_evaluation_bytes(config, sizes, mesh),
    draft_model=draft_weights,
    host_cache=(config.rollout.host_cache_tokens or 0)
    * sizes.policies
    * _token_bytes(model),
    **_reward_model_bytes(config, mesh, platform),
  )


def _token_bytes(model: transformer.ModelConfig) -> int:
  """Keys and values of a token, of all heads."""
  itemsize = jnp.dtype(model.compute_dtype).itemsize
  heads = model.num_layers * model.num_kv_heads * model.head_size
  return 2 * heads * itemsize


def _held_on_tpu(
  model: transformer.ModelConfig, params: Any, trainable: Any, gathered: bool
) -> int:
  """Returns what XLA for TPU holds besides, all through an update.

  Those are copies in the compute dtype: of weights that are gathered this
  device's shares, and two more of the last matrix, of others the whole layers.
  """
  if model.platform.name != 'tpu' or model.compute_dtype == model.param_dtype:
    return 0
  held = sum(map(_numbers, jax.tree.leaves(params)))
  last = _last_matrix(model, trainable)
  held += 2 * last if gathered else -last
  return jnp.dtype(model.compute_dtype).itemsize * held


def _table_on_tpu(
  model: transformer.ModelConfig, trainable: Any, sizes: Sizes
) -> int:
  """Returns what the table of tokens adds to a layer of one microbatch.

  XLA for TPU has its copy for all microbatches, and adds its gradient to the
  sum before it comes to the layers.
  """
  if model.platform.name != 'tpu':
    return 0
  table = sizes.table() if sizes.copied else 0
  return table - 4 * _last_matrix(model, trainable)


def _last_matrix(model: transformer.ModelConfig, trainable: Any) -> int:
  """Numbers of the last matrix on a device; 0 if it is not trained."""
  if 'model' not in trainable:
    return 0
  name = 'embed' if model.tied_embeddings else 'lm_head'
  return _numbers(trainable['model'][name])


def _numbers(array: jax.ShapeDtypeStruct) -> int:
  """Numbers of an array on a device."""
  return math.prod(array.sharding.shard_shape(array.shape))


def _draft_model_bytes(
  config: ExperimentConfig, mesh: Any, platform: Platform
) -> tuple[int, int]:
  """(parameters and what samples, cache) of a draft model of known shape."""
  model = draft_model.planned(config, platform)
  if model is None:
    return 0, 0
  weights = bytes_per_device(params_lib.shapes(model, mesh))
  weights += _sampler_weights(model, mesh, False)
  sizes = dataclasses.replace(Sizes.of(config, model, mesh), policies=1)
  return weights, sizes.cache()


def _reward_model_bytes(
  config: ExperimentConfig, mesh: Any, platform: Platform
) -> dict[str, int]:
  """Parameters of all, judges too, and what the largest holds of a layer."""
  found = [
    reward_models.planned(one, config, platform) for one in config.reward_models
  ]
  found = [model for model in found if model is not None]
  found += judges.planned(config, platform)

  def layer(model):
    return dataclasses.replace(model, num_layers=1, remat=True)

  # Rows are scored before a rollout piece puts others beside them.
  def sizes(model):
    return dataclasses.replace(Sizes.of(config, layer(model), mesh), widened=1)

  return {
    'reward_models': sum(
      bytes_per_device(params_lib.shapes(model, mesh)) for model in found
    ),
    'scoring': max(
      (x.activations() + x.layer() for x in map(sizes, found)), default=0
    ),
  }


def _evaluation_bytes(config: ExperimentConfig, sizes: Sizes, mesh) -> int:
  """The bytes of the set that needs most; 0 without evaluations.

  Options are scored in microbatches of the score stage, which counts itself.
  """
  if not config.evaluation.every:
    return 0
  each = evaluations(config).values()
  drawn = [one for one in each if not one.evaluation.options]
  return max((_set_bytes(one, sizes, mesh) for one in drawn), default=0)


def _set_bytes(config: ExperimentConfig, sizes: Sizes, mesh) -> int:
  """Cache and scratch of greedy responses or of samples, and their arrays."""
  settings = config.evaluation
  axes = dict(mesh.shape)
  shards = math.prod(axes[axis] for axis in mesh_lib.ROW_AXES)
  # Never more than there are prompts, in batches that rows share evenly.
  prompts = min(settings.batch_prompts, settings.num_prompts)
  prompts = -(-prompts // shards) * shards
  tokens, group = evaluated_tokens(config), max(1, settings.num_samples)
  samplers = layout.parts(prompts, 'sampled_rows', axes)
  slots, cached = config.rollout.slots, config.rollout.cache_tokens
  evaluated = functools.partial(
    dataclasses.replace,
    rollout=-(-prompts // samplers),
    slots=slots and -(-slots // samplers),
    cache_tokens=cached and -(-cached // samplers),
    group_size=group,
    response=tokens,
    drafts=in_evaluations(config.rollout.speculative),
    # Transforms read no other policies here; a game has its opponent.
    policies=2 if config.method.wrapper.plays else 1,
    continued=1,
    played=1,
  )
  draft = draft_model.planned(config, sizes.model.platform)
  sizes = evaluated(sizes)
  rows = 4 * 4 * prompts * group * tokens  # ids, kinds, masks, log-probs
  drawn, searched = sizes.cache() + sizes.scratch(), 0
  if draft is not None:
    alone = evaluated(Sizes.of(config, draft, mesh))
    drawn += dataclasses.replace(alone, policies=1).cache()
  if settings.beams is not None:  # without slots and drafts
    plain = {'slots': None, 'cache_tokens': None, 'drafts': None}
    plain = dataclasses.replace(sizes, **plain)
    kept = dataclasses.replace(plain, group_size=settings.beams, beams=True)
    searched = kept.cache() + kept.scratch()
  return max(drawn, searched) + rows


def _sampler_weights(
  model: transformer.ModelConfig, mesh: Any, kept: bool
) -> int:
  """Returns what generate.prepare_weights makes: whole over fsdp, compute
  dtype.

  Nothing where that is what the parameters are already, but if `kept`: of
  episodes from turn to turn, and where they are rounded.
  """
  same = model.compute_dtype == model.param_dtype
  if same and dict(mesh.shape)['fsdp'] == 1 and not kept:
    return 0

  def one(path, s):
    dtype = s.dtype if 'norm' in path[-1].key else model.compute_dtype
    axes = tuple(None if axis == 'width' else axis for axis in s.logical_axes)
    return dataclasses.replace(s, dtype=dtype, logical_axes=axes)

  specs = {
    name: tree
    for name, tree in transformer.specs(model).items()
    if name in ('model', 'lora')
  }
  specs = jax.tree_util.tree_map_with_path(one, specs, is_leaf=spec.is_spec)
  shapes = jax.tree.map(
    lambda s, place: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=place),
    specs,
    mesh_lib.param_shardings(specs, mesh),
    is_leaf=spec.is_spec,
  )
  return bytes_per_device(shapes)


def _rollout_bytes(config: ExperimentConfig, widened: int) -> int:
  """Ids, masks, log-probs and advantages; every device holds all rows.

  About 10 arrays of 4 bytes, before and after make_batch, of two iterations;
  and the responses that drafts are looked up in, before and after a call.
  """
  rollout = config.rollout
  rows = rollout.num_prompts * rollout.group_size * widened
  numbers = 10 * 2 * rows * rollout.max_response_tokens
  if isinstance(rollout.speculative, PreviousResponses):
    numbers += 2 * rollout.speculative.prompts * rollout.max_response_tokens
  return 4 * numbers
