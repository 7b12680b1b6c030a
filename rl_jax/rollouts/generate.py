"""Sampling: prefill once per group, then one token per row and step."""

from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models, randomness, sharding
from rl_jax.rollouts.sampling import SamplingConfig, sample_token
from rl_jax.types import PAD, POLICY, Array, Trajectories


def start_trajectories(
  prompt_NP: Array,
  prompt_mask_NP: Array,
  prompt_id_N: Array,
  *,
  group_size: int,
  max_response_tokens: int,
  first_serial: Array | int = 0,
  policy_version: Array | int = 0,
) -> Trajectories:
  """An empty record: group_size rows per prompt, nothing generated yet.

  first_serial: the run's serial of the first group; the others follow.
  """
  num_prompts = prompt_NP.shape[0]
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
) -> Trajectories:
  """Continues every unfinished row from length_B.

  Tokens already in response_BT (the first length_B) are fed as they are and
  keep their kind. A row stops at a token of sampling.eos_ids, which is part of
  the response, after max_new_tokens new tokens, or when its T are full. Jit it
  with cfg and max_new_tokens static. Works with and without a mesh in force.

  Args:
    key: the run's key; draws depend on it, row_id and the token index alone.

  Returns:
    traj with response, kind, length, finished, logp_behaviour and mask filled.
    logp_behaviour is that of the transformed distribution. With
    params['lagged'] the transforms also see the logits of that policy.
  """
  rows, max_tokens = traj.response_BT.shape
  row_keys_B = randomness.row_keys(
    randomness.purpose_key(key, randomness.SAMPLING), traj.row_id_B2
  )
  limit_B = jnp.minimum(traj.length_B + max_new_tokens, max_tokens)
  limit_B = jnp.where(traj.finished_B, traj.length_B, limit_B)
  given_B = traj.length_B
  eos = jnp.asarray(sampling.eos_ids, jnp.int32)
  # Cast and gathered over fsdp once, not at every step. One policy, or two.
  policies = [params] + ([params['lagged']] if 'lagged' in params else [])
  weights = [prepare_weights(policy, cfg) for policy in policies]

  def draw(step, hidden, traj):
    """Writes token `step` of the rows that are still going."""
    logits = [
      models.logits(w, cfg, h_BD)
      for w, h_BD in zip(weights, hidden, strict=True)
    ]
    uniform_B = randomness.token_uniform(row_keys_B, jnp.full(rows, step))
    token_B, logp_B = sample_token(
      sampling.transform(*logits), uniform_B, sampling.greedy
    )
    new_B = (step >= given_B) & (step < limit_B) & ~traj.finished_B
    ended_B = new_B & (token_B[:, None] == eos[None]).any(axis=1)

    def write(array_BT, value_B):
      old_B = lax.dynamic_index_in_dim(array_BT, step, 1, keepdims=False)
      value_B = jnp.where(new_B, value_B, old_B)
      return lax.dynamic_update_index_in_dim(array_BT, value_B, step, 1)

    return traj.replace(
      response_BT=write(traj.response_BT, token_B),
      kind_BT=write(traj.kind_BT, jnp.full_like(token_B, POLICY)),
      logp_behaviour_BT=write(traj.logp_behaviour_BT, logp_B),
      length_B=jnp.where(new_B, step + 1, traj.length_B),
      finished_B=traj.finished_B | ended_B,
    )

  def going(carry):
    step, traj, _ = carry
    return ((step < limit_B) & ~traj.finished_B).any()

  def advance(carry):
    step, traj, caches = carry
    token_B = lax.dynamic_index_in_dim(
      traj.response_BT, step - 1, 1, keepdims=False
    )
    fed = [
      models.decode_step(w, cfg, token_B, step - 1, cache)
      for w, cache in zip(weights, caches, strict=True)
    ]
    hidden, caches = zip(*fed, strict=True)
    return step + 1, draw(step, hidden, traj), caches

  begun = [_begin(w, cfg, traj) for w in weights]
  hidden, caches = zip(*begun, strict=True)
  traj = draw(jnp.int32(0), hidden, traj)
  _, traj, _ = lax.while_loop(going, advance, (jnp.int32(1), traj, caches))
  return traj.replace(mask_BT=(traj.kind_BT == POLICY).astype(jnp.float32))


def _begin(weights, cfg, traj):
  """States [B, D] that predict the first response tokens, and the cache."""
  hidden_ND, prompt_cache = models.prefill(
    weights, cfg, traj.prompt_NP, traj.prompt_mask_NP
  )
  # The last token is never fed, so the cache needs one place less.
  places = max(traj.response_BT.shape[1] - 1, 1)
  cache = models.extend(prompt_cache, traj.group_size, places)
  return jnp.repeat(hidden_ND, traj.group_size, axis=0), cache


def prepare_weights(params: dict[str, Any], cfg: models.ModelConfig) -> Any:
  """Weights in the compute dtype, whole over fsdp, split over tensor.

  Scales of norms keep their dtype: forward applies them in float32.
  """
  specs = models.specs(cfg)

  def one(path, spec, x):
    if 'norm' not in path[-1].key:
      x = x.astype(cfg.compute_dtype)
    axes = (None if axis == 'width' else axis for axis in spec.logical_axes)
    return sharding.constrain(x, *axes)

  return {
    name: jax.tree_util.tree_map_with_path(
      one, specs[name], params[name], is_leaf=models.is_spec
    )
    for name in ('model', 'lora')
    if name in params
  }
