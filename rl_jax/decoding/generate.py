"""Sampling: every prompt is encoded once, then its group is decoded."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from rl_jax import models, randomness
from rl_jax.decoding.decode import decode
from rl_jax.decoding.pooled_decode import PooledDecoder
from rl_jax.decoding.rounding import rounded
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slots import Rows
from rl_jax.pieces.logits.transforms import policies_of
from rl_jax.runtime import layout
from rl_jax.types import PAD, POLICY, Array, Trajectories


@dataclasses.dataclass(frozen=True)
class Limits:
  """The limits of a call: how much it decodes, and in how much memory.

  max_new_tokens: that a row gets at most. slots, cache_tokens: see generate.
  """

  max_new_tokens: int
  slots: int | None = None
  cache_tokens: int | None = None


@dataclasses.dataclass(frozen=True)
class Drafting:
  """The changes that speculative decoding makes to decoded_rows.

  make: `(shared, by_prompt, begun) -> (make of decode, begun)`. shared is
    replicated over the shards of rows, by_prompt has prompts in front.
  """

  make: Callable
  shared: Any = ()
  by_prompt: Any = ()


def start_trajectories(
  prompt_NP: ArrayLike,
  prompt_mask_NP: ArrayLike,
  prompt_id_N: ArrayLike,
  *,
  group_size: int,
  max_response_tokens: int,
  first_serial: Array | int = 0,
  policy_version: Array | int = 0,
) -> Trajectories:
  """An empty record: group_size rows per prompt, nothing generated yet.

  first_serial: the run's serial of the first group; the others follow.
  """
  num_prompts = jnp.shape(prompt_NP)[0]
  rows = num_prompts * group_size
  shape = (rows, max_response_tokens)
  serial_N = first_serial + jnp.arange(num_prompts, dtype=jnp.int32)
  sample_G = jnp.arange(group_size, dtype=jnp.int32)
  row_id_B2 = jnp.stack(
    [jnp.repeat(serial_N, group_size), jnp.tile(sample_G, num_prompts)], axis=1
  )
  return Trajectories(
    prompt_NP=jnp.asarray(prompt_NP, jnp.int32),
    prompt_mask_NP=jnp.asarray(prompt_mask_NP, jnp.float32),
    prompt_id_N=jnp.asarray(prompt_id_N, jnp.int32),
    group_size=group_size,
    response_BT=jnp.zeros(shape, jnp.int32),
    kind_BT=jnp.full(shape, PAD, jnp.int32),
    length_B=jnp.zeros(rows, jnp.int32),
    finished_B=jnp.zeros(rows, bool),
    row_id_B2=row_id_B2,
    policy_version_B=jnp.full(rows, policy_version, jnp.int32),
    mask_BT=jnp.zeros(shape, jnp.float32),
    valid_B=jnp.ones(rows, jnp.float32),
    weight_B=jnp.ones(rows, jnp.float32),
    logp_behaviour_BT=jnp.zeros(shape, jnp.float32),
  )


def generate(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  *,
  max_new_tokens: int,
  slots: int | None = None,
  cache_tokens: int | None = None,
) -> Trajectories:
  """Continues every unfinished row from length_B.

  Tokens already in response_BT (the first length_B) are fed as they are and
  keep their kind. A row stops at a token that ends it by `sampling`, which is
  part of the response, after max_new_tokens new tokens, or when its T are full.
  A stop text may begin in given tokens; one that is whole in them ends nothing.
  Jit it with cfg and max_new_tokens static. Works with and without a mesh in
  force.

  Args:
    slots: rows that are decoded at a time, of all devices; the cache grows with
      them. None: all rows.
    cache_tokens: of responses whose keys and values fit on all devices; slots
      share them. None: each slot has room for all T.
    key: the run's key; draws depend on it, row_id and the token index only.

  Returns:
    traj with response, kind, length, finished, logp_behaviour and mask filled.
    logp_behaviour is that of the transformed distribution. The
    transforms see the logits of those of params['policies'] that they name.
  """
  rows = decoded_rows(
    params,
    cfg,
    traj,
    key,
    sampling,
    Limits(max_new_tokens, slots, cache_tokens),
  )
  return filled(traj, rows)


def decoded_rows(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  limits: Limits,
  drafting: Drafting | None = None,
) -> Rows:
  """The rows of traj after decoding, see generate; drafting: None: plain."""
  params = rounded(params, sampling.weights)
  rows = _begun_rows(traj, key, sampling, limits, drafting is not None)
  policies = [params, *policies_of(sampling.transforms, params).values()]
  begun = [
    models.prefill(policy, cfg, traj.prompt_NP, traj.prompt_mask_NP)
    for policy in policies
  ]
  # Cast and gathered over fsdp once, not at every step.
  weights = [
    prepare_weights(policy, cfg, sampling.reads_values) for policy in policies
  ]

  def shard(weights, sampling, begun, rows, shared, by_prompt):
    """Row shards decode on their own: each narrows and stops by itself."""
    total, decoder = rows.length_B.shape[0], None

    def share(number):
      return -(-number * total // len(traj.length_B))

    if limits.cache_tokens is not None:
      held = share(limits.cache_tokens)
      decoder = functools.partial(PooledDecoder, cache_tokens=held)
    if drafting is not None:
      decoder, begun = drafting.make(shared, by_prompt, begun)
    return decode(
      weights,
      cfg,
      sampling,
      begun,
      rows,
      new_tokens=limits.max_new_tokens,
      slots=total if limits.slots is None else share(limits.slots),
      make=decoder,
    )

  split = (False, False, True, True, False, True)
  by_rows = layout.by_rows(shard, split, traj.num_prompts)
  shared = by_prompt = ()
  if drafting is not None:
    shared, by_prompt = drafting.shared, drafting.by_prompt
  return by_rows(weights, sampling, begun, rows, shared, by_prompt)


def _begun_rows(traj, key, sampling, limits, drafted) -> Rows:
  """The rows of traj before decoding; drafted: with counts of passes."""
  rows = unfinished_rows(traj, key, limits.max_new_tokens)
  if sampling.stop_SV is not None:
    rows = rows.replace(stop_B=stop_states(traj, sampling, 0))
  if drafted:
    passes_B3 = jnp.zeros((*rows.length_B.shape, 3), jnp.int32)
    rows = rows.replace(passes_B3=passes_B3)
  return rows


def filled(traj: Trajectories, rows: Rows) -> Trajectories:
  """traj with what its rows hold now.

  What a program only passes on is tied to the rows that it has decoded: where
  results are gathered, XLA for TPU would otherwise move the gather of the
  prompts into the loop over tokens, and repeat it at every step.
  """
  traj, rows = jax.lax.optimization_barrier((traj, rows))
  return traj.replace(
    response_BT=rows.response_BT,
    kind_BT=rows.kind_BT,
    logp_behaviour_BT=rows.logp_BT,
    length_B=rows.length_B,
    finished_B=rows.finished_B,
    mask_BT=(rows.kind_BT == POLICY).astype(jnp.float32),
  )


def unfinished_rows(traj, key, max_new_tokens):
  """The rows of traj, with their limits and keys."""
  limit_B = jnp.minimum(
    traj.length_B + max_new_tokens, traj.response_BT.shape[1]
  )
  return Rows(
    response_BT=traj.response_BT,
    kind_BT=traj.kind_BT,
    logp_BT=traj.logp_behaviour_BT,
    length_B=traj.length_B,
    finished_B=traj.finished_B,
    given_B=traj.length_B,
    limit_B=jnp.where(traj.finished_B, traj.length_B, limit_B),
    key_B=randomness.row_keys(
      randomness.purpose_key(key, randomness.SAMPLING), traj.row_id_B2
    ),
  )


def stop_states(
  traj: Trajectories, sampling: SamplingConfig, since_B: Array | int
) -> Array:
  """States of the stop automaton after each row's tokens from `since` on."""

  def step(t, state_B):
    after_B = sampling.follow(state_B, traj.response_BT[:, t])
    here_B = (t >= since_B) & (t < traj.length_B)
    return jnp.where(here_B, after_B, state_B)

  start_B = jnp.zeros_like(traj.length_B)
  return jax.lax.fori_loop(0, traj.length_B.max(), step, start_B)


def prepare_weights(
  params: dict[str, Any], cfg: models.ModelConfig, values: bool = False
) -> Any:
  """Weights of decode_step: compute dtype, whole over fsdp, apart or stacked.

  Scales of norms keep their dtype: forward applies them in float32. values:
  with the value head, as it is.
  """
  specs = models.specs(cfg)
  head = {'value_head': params['value_head']} if values else {}

  def one(path, spec, x):
    axes = spec.logical_axes[-x.ndim :]  # without that of layers, if x is one's
    if cfg.platform.is_gpu:
      # Or XLA exchanges all layers in their dtype, before a loop over them.
      x = layout.constrain(x, *axes)
    if 'norm' not in path[-1].key:
      x = x.astype(cfg.compute_dtype)
      if not cfg.platform.is_cpu:  # or XLA gathers x in its own dtype
        x = jax.lax.optimization_barrier(x)
    if cfg.platform.is_gpu:
      return layout.gathered(x, *axes)
    return layout.constrain(
      x, *(None if axis == 'width' else axis for axis in axes)
    )

  def whole(specs, tree):
    return jax.tree_util.tree_map_with_path(
      one, specs, tree, is_leaf=models.is_spec
    )

  scanned = models.scans_layers(cfg)
  together = scanned and not layout.split_over(cfg.width, 'width')
  if together or not cfg.platform.is_gpu:
    named = [name for name in ('model', 'lora') if name in params]
    tree = {name: whole(specs[name], params[name]) for name in named}
    return models.decoding_weights(tree, cfg) | head
  # Layers are cut out of weights that are still split over fsdp: of whole ones
  # XLA would hold all layers twice while it cuts, or gathers in another order.
  weights = models.decoding_weights(params, cfg)
  of_layer = {'base': specs['model'].pop('layers')}
  if 'lora' in params:
    of_layer['lora'] = specs['lora']['layers']

  def prepared(layer):
    return layer | {
      name: whole(of_layer[name], layer[name]) for name in of_layer
    }

  if scanned:
    layers = jax.lax.map(prepared, weights['layers'])
  else:
    layers = tuple(map(prepared, weights['layers']))
  return {
    'model': whole(specs['model'], weights['model']),
    'layers': layers,
  } | head
