"""What one iteration keeps on a device, in bytes, estimated from shapes alone.

  always    parameters + reference + reward models + optimizer + rollout
  update    gradients + activations + logits
  generate  the sampler's copy of the weights + cache + scratch
  evaluate  the same of an evaluation

The first and the largest of the others must fit. Parameters, optimizer, copies
and cache are exact; gradients, activations and logits count the arrays that the
programs hold at their peak, one by one below, of full responses: an update that
is packed needs less. tests/planning/test_memory_plan.py compares the sums with
what XLA says of the compiled programs.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.config import ExperimentConfig, evaluated_tokens
from rl_jax.learning import statistics
from rl_jax.models import attention as attention_lib
from rl_jax.models import (
  block_pool,
  critic,
  experts,
  kv_cache,
  spec,
  transformer,
)
from rl_jax.models import params as params_lib
from rl_jax.planning import abstract_run
from rl_jax.rollouts import decode
from rl_jax.rollouts.drafts import Drafts, PreviousResponses, in_evaluations
from rl_jax.rollouts.slots import shares_prompts
from rl_jax.runs import draft_model, judges, reward_models
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib

# Arrays of a kind that are alive together where memory peaks.
SCORE_COPIES = 3  # scores, weights and their cotangent
ROW_COPIES = 4  # with and without turning, and the cotangents of both
MLP_COPIES = 5  # gate, up, silu(gate) * up, and the cotangents of two
ROUTED_COPIES = 4  # states sorted by expert, before and after; cotangents
LOGIT_COPIES = 4  # logits, probabilities, their cotangents
HIDDEN_COPIES = 3  # states, those without padding, their cotangent
SAMPLING_COPIES = 3  # logits, and twice those at the temperature


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryPlan:
  """Bytes on one device."""

  parameters: int
  reference: int  # and every other named policy, and lagged weights
  optimizer: int
  gradients: int
  activations: int
  logits: int
  sampler_weights: int
  cache: int
  scratch: int  # of sampling: prefill, and logits of a step
  rollout: int  # the [B, T] arrays of an iteration
  evaluation: int = 0  # cache and scratch; 0 without evaluations
  reward_models: int = 0  # their parameters
  scoring: int = 0  # of one layer of the largest of them
  draft_model: int = 0  # its parameters and sampler weights

  @property
  def kept(self) -> int:
    """From start to end of a run."""
    policies = self.parameters + self.reference + self.reward_models
    return policies + self.draft_model + self.optimizer + self.rollout

  @property
  def update(self) -> int:
    """While a minibatch is trained on."""
    return self.kept + self.gradients + self.activations + self.logits

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
  """Of a tree of jax.ShapeDtypeStruct with shardings."""
  return sum(
    math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize
    for x in jax.tree.leaves(tree)
  )


def estimate(
  config: ExperimentConfig, model: transformer.ModelConfig, mesh: Any
) -> MemoryPlan:
  """The plan on a mesh, which may be abstract: nothing is allocated."""
  params = params_lib.shapes(model, mesh)
  trainable, _ = params_lib.split_trainable(model, params)
  state = abstract_run.train_state(config, trainable, mesh)
  rules = config.method.policies().values()
  copies = sum(rule.copies for rule in rules) + config.rollout.staleness
  sizes = _Sizes.of(config, model, mesh)
  minibatch = config.update.minibatch_prompts or config.rollout.num_prompts
  # The sum so far in float32, and the gradient of one more microbatch.
  one = sum(
    math.prod(x.sharding.shard_shape(x.shape)) * 4
    for x in jax.tree.leaves(trainable)
  )
  parts = config.rollout.group_size // sizes.group_rows
  draft_weights, draft_cache = _draft_model_bytes(config, mesh)
  pieces = minibatch // (config.update.microbatch_prompts or minibatch) * parts
  return MemoryPlan(
    parameters=bytes_per_device(params),
    reference=copies * bytes_per_device(trainable),
    optimizer=bytes_per_device(state.opt_state),
    gradients=one * (2 if pieces > 1 else 1),
    activations=sizes.activations(),
    logits=sizes.logits(),
    sampler_weights=_sampler_weights(model, mesh, sizes.episodes),
    cache=sizes.cache() + draft_cache,
    scratch=sizes.scratch(),
    rollout=_rollout_bytes(config),
    evaluation=_evaluation_bytes(config, sizes, mesh),
    draft_model=draft_weights,
    **_reward_model_bytes(config, mesh),
  )


def _draft_model_bytes(config: ExperimentConfig, mesh: Any) -> tuple[int, int]:
  """(parameters and what samples, cache) of a draft model of known shape."""
  model = draft_model.planned(config)
  if model is None:
    return 0, 0
  weights = bytes_per_device(params_lib.shapes(model, mesh))
  weights += _sampler_weights(model, mesh, False)
  return weights, _Sizes.of(config, model, mesh).cache()


def _reward_model_bytes(config: ExperimentConfig, mesh: Any) -> dict[str, int]:
  """Parameters of all, judges too, and what the largest holds of a layer."""
  found = [reward_models.planned(one, config) for one in config.reward_models]
  found = [model for model in found if model is not None]
  found += judges.planned(config)
  layer = lambda model: dataclasses.replace(model, num_layers=1, remat=True)
  return {
    'reward_models': sum(
      bytes_per_device(params_lib.shapes(model, mesh)) for model in found
    ),
    'scoring': max(
      (_Sizes.of(config, layer(m), mesh).activations() for m in found),
      default=0,
    ),
  }


def _evaluation_bytes(config: ExperimentConfig, sizes: '_Sizes', mesh) -> int:
  """Cache and scratch of greedy responses or of samples, and their arrays."""
  settings = config.evaluation
  if not settings.every:
    return 0
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
  )
  sizes, draft = evaluated(sizes), draft_model.planned(config)
  rows = 4 * 4 * prompts * group * tokens  # ids, kinds, masks, log-probs
  if draft is not None:
    rows += evaluated(_Sizes.of(config, draft, mesh)).cache()
  return sizes.cache() + sizes.scratch() + rows


def _sampler_weights(
  model: transformer.ModelConfig, mesh: Any, episodes: bool
) -> int:
  """What generate.prepare_weights makes: whole over fsdp, compute dtype.

  Nothing where that is what the parameters are already, but for episodes, of
  which it is kept from turn to turn.
  """
  same = model.compute_dtype == model.param_dtype
  if same and dict(mesh.shape)['fsdp'] == 1 and not episodes:
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


def _rollout_bytes(config: ExperimentConfig) -> int:
  """Ids, masks, log-probs and advantages; every device holds all rows.

  About 10 arrays of 4 bytes, before and after make_batch, of two iterations;
  and the responses that drafts are looked up in, before and after a call.
  """
  rollout = config.rollout
  rows = rollout.num_prompts * rollout.group_size
  numbers = 10 * 2 * rows * rollout.max_response_tokens
  if isinstance(rollout.speculative, PreviousResponses):
    numbers += 2 * rollout.speculative.prompts * rollout.max_response_tokens
  return 4 * numbers


def _hidden_units(model: transformer.ModelConfig, split: Any) -> int:
  """Of a token on a device.

  Of chosen experts all, as all of a token's may be those of one device.
  """
  if not model.num_experts:
    return split(model.mlp_size)
  if model.expert_products == experts.CHOSEN:
    return model.experts_per_token * model.mlp_size
  return split(model.num_experts) * model.mlp_size


@dataclasses.dataclass(frozen=True)
class _Sizes:
  """Dimensions on one device."""

  model: transformer.ModelConfig
  microbatch: int  # groups of one forward pass
  rollout: int  # groups of one part of a rollout
  group_size: int
  group_rows: int  # of a group in one forward pass
  prompt: int  # P
  response: int  # T
  heads: int  # of queries
  kv_heads: int
  mlp: int  # hidden units of a token, of all experts that compute it
  vocab: int
  itemsize: int  # of the compute dtype
  slots: int | None  # rows that are decoded at a time
  cache_tokens: int | None  # of their responses; None: whole ones
  spans: int  # of a response, on different devices in an update
  episodes: bool  # rows have several turns
  drafts: Drafts | None  # of speculative decoding

  @classmethod
  def of(cls, config, model, mesh) -> '_Sizes':
    rollout, axes = config.rollout, dict(mesh.shape)
    minibatch = config.update.minibatch_prompts or rollout.num_prompts
    shards = math.prod(axes[axis] for axis in mesh_lib.ROW_AXES)
    prompts = rollout.num_prompts // rollout.parts
    samplers = layout.parts(prompts, 'sampled_rows', axes)
    split = lambda n: n if n % axes['tensor'] else n // axes['tensor']
    share = lambda n: n and -(-n // samplers)
    return cls(
      model=model,
      microbatch=-(-(config.update.microbatch_prompts or minibatch) // shards),
      rollout=-(-prompts // samplers),
      group_size=rollout.group_size,
      group_rows=config.update.microbatch_rows or rollout.group_size,
      prompt=rollout.max_prompt_tokens,
      response=rollout.max_response_tokens,
      heads=split(model.num_heads),
      kv_heads=split(model.num_kv_heads),
      mlp=_hidden_units(model, split),
      vocab=split(model.vocab_size),
      itemsize=jnp.dtype(model.compute_dtype).itemsize,
      slots=share(rollout.slots),
      cache_tokens=share(rollout.cache_tokens),
      spans=mesh_lib.spans(mesh),
      episodes=rollout.turns is not None,
      drafts=rollout.speculative,
    )

  def activations(self) -> int:
    """Saved for the backward pass, and the largest part of one layer."""
    m, own = self.model, self.response // self.spans
    # The last token is not fed; if responses are split, every place is.
    S = own if self.spans > 1 else own - 1
    rows = self.microbatch * self.group_rows
    tokens = self.microbatch * self.prompt + rows * S
    products = (self.heads + 2 * self.kv_heads) * m.head_size
    products += 2 * m.width + (0 if self._routed else 2 * self.mlp)
    # Every layer's input and, without remat, its products with weights; with
    # it those of the one layer that is being computed again.
    saved = m.num_layers * m.width
    saved += products * (1 if m.remat else m.num_layers)
    saved *= tokens * self.itemsize * (1 + critic.has_own(m))
    queries = attention_lib.queries_at_once(S)
    scores = (
      rows * queries * (self.response - 1 + self.prompt)
      + self.microbatch * self.prompt**2
    )
    attention = SCORE_COPIES * self.heads * scores * 4
    if self.spans > 1:  # keys and values of all devices, and their cotangents
      whole = 2 * 2 * rows * self.response * self.kv_heads * m.head_size
      attention += whole * self.itemsize
    if m.attention != 'plain':  # rows and their copies instead of scores
      row = rows * (S + self.prompt) * m.head_size * self.itemsize
      saved += m.num_layers * row * self.heads
      attention = ROW_COPIES * row * (self.heads + 2 * self.kv_heads)
    mlp = tokens * self._mlp_numbers(ROUTED_COPIES) * self.itemsize
    hidden = HIDDEN_COPIES * rows * own * m.width * self.itemsize
    return saved + hidden + max(attention, mlp)

  @property
  def _routed(self) -> int:
    """Numbers of a token's states, once for each of its experts."""
    chosen = self.model.expert_products == experts.CHOSEN
    return self.model.experts_per_token * self.model.width if chosen else 0

  def _mlp_numbers(self, copies: int) -> int:
    """Of a token in the MLP or the experts of one layer."""
    return MLP_COPIES * self.mlp + copies * self._routed

  def logits(self) -> int:
    """One chunk of scoring."""
    step = self.microbatch * self.group_rows * self.vocab
    own = self.response // self.spans
    span = max(1, min(own, statistics.chunk_elements() // step))
    return LOGIT_COPIES * span * step * 4

  def cache(self) -> int:
    """Keys and values of every prompt once, and of every slot.

    While the batch narrows the rows that go on have theirs again, and while
    the cache grows all rows their first places. Few slots of many rows have
    their prompts to themselves. Episodes keep all places between their turns.
    """
    m, rows = self.model, self.rollout * self.group_size
    token = 2 * m.num_layers * self.kv_heads * m.head_size * self.itemsize
    if self.episodes:
      own = math.prod(kv_cache.turn_blocks(self.response))
      return (self.rollout * self.prompt + rows * own) * token
    if self.cache_tokens and self.drafts is None:
      return self._pool() * token
    own = math.prod(kv_cache.blocks_of(self.response))
    slots = min(self.slots or rows, rows)
    widths = decode.batch_widths(slots, self.response, m.num_layers)
    places = self.rollout * self.prompt
    if self.drafts is None and decode.wide_widths(widths, rows, self.response):
      places += rows * kv_cache.first_places(self.response)
    for width in widths[:2]:
      shared = shares_prompts(rows, width)
      places += width * (own if shared else own + self.prompt)
    return places * token

  def _pool(self) -> int:
    """Places of prompts, of shared blocks, and of those that few rows keep."""
    rows = self.rollout * self.group_size
    slots = min(self.slots or rows, rows)
    size, whole, blocks = block_pool.sizes(self.response, self.cache_tokens)
    widths = decode.batch_widths(slots, self.response, self.model.num_layers)
    fewer = [width * whole for width in widths if width * whole < blocks]
    places = (
      self.rollout * self.prompt + (blocks + max(fewer, default=0)) * size
    )
    own = [width for width in widths[:2] if not shares_prompts(rows, width)]
    return places + sum(own) * self.prompt

  def scratch(self) -> int:
    """The larger of prefill and of the logits of one decoding step."""
    prompts = self.rollout * self.prompt
    scores = SCORE_COPIES * prompts * self.prompt * self.heads * 4
    prefill = max(
      scores if self.model.attention == 'plain' else 0,
      prompts * self._mlp_numbers(ROUTED_COPIES // 2) * self.itemsize,
    )
    rows = self.rollout * self.group_size
    rows = min(self.slots or rows, rows)
    if self.drafts is not None:
      rows *= self.drafts.width(rows) + 1
    return max(prefill, SAMPLING_COPIES * rows * self.model.vocab_size * 4)
