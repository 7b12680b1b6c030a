"""The smallest models and rollouts with a model; load by the `tiny` fixture."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import models
from rl_jax.models import params as params_lib
from rl_jax.types import Trajectories

CFG = models.ModelConfig(
  vocab_size=11,
  num_layers=1,
  width=16,
  num_heads=2,
  num_kv_heads=1,
  head_size=8,
  mlp_size=24,
  value_head=True,
)
TEMPERATURE = 0.7


@functools.cache
def params(seed: int = 0):
  """Weights whose distributions are far from uniform, and some values."""
  tree = params_lib.init_params(CFG, jax.random.key(seed))
  tree['model']['embed'] = tree['model']['embed'] * 15
  head = np.random.default_rng(seed).normal(size=CFG.width)
  tree['value_head']['w'] = jnp.asarray(head, jnp.float32)
  return tree


def rollout(
  *, num_prompts: int = 4, group_size: int = 2, length: int = 5
) -> Trajectories:
  """Ragged random rows, scored by nobody yet; one row trains nothing."""
  rng = np.random.default_rng(3)
  B, T, P = num_prompts * group_size, length, 3
  lengths = rng.integers(1, T + 1, B)
  lengths[0] = T
  mask = (np.arange(T) < lengths[:, None]).astype(np.float32)
  weight = np.ones(B, np.float32)
  weight[1] = 0.0
  prompt_mask = np.ones((num_prompts, P), np.float32)
  prompt_mask[1, :2] = 0
  row = np.arange(B)
  fields = dict(
    prompt_NP=rng.integers(0, CFG.vocab_size, (num_prompts, P)),
    prompt_mask_NP=prompt_mask,
    prompt_id_N=np.arange(num_prompts),
    response_BT=rng.integers(0, CFG.vocab_size, (B, T)),
    kind_BT=mask.astype(np.int32),
    length_B=lengths,
    row_id_B2=np.stack([row // group_size + 40, row % group_size], 1),
    policy_version_B=np.zeros(B, np.int32),
    mask_BT=mask,
    valid_B=np.ones(B, np.float32),
    weight_B=weight,
    logp_behaviour_BT=np.zeros((B, T), np.float32),
    reward_B=(rng.random(B) < 0.5).astype(np.float32),
    advantages_BT=(rng.normal(size=(B, 1)) * mask).astype(np.float32),
    returns_BT=(rng.normal(size=(B, T)) * mask).astype(np.float32),
  )
  fields = {
    k: jnp.asarray(v, jnp.int32 if v.dtype == np.int64 else v.dtype)
    for k, v in fields.items()
  }
  return Trajectories(
    group_size=group_size, finished_B=jnp.ones(B, bool), **fields
  )


def widen(traj: Trajectories, prompt: int, response: int) -> Trajectories:
  """The same rows with more padding, filled with tokens nobody may read."""

  def pad(name, x):
    if name.endswith('_NP'):
      garbage = 3 if x.dtype == jnp.int32 and 'mask' not in name else 0
      return jnp.pad(x, ((0, 0), (prompt, 0)), constant_values=garbage)
    if name.endswith('_BT') and x is not None:
      garbage = 3 if name == 'response_BT' else 0
      return jnp.pad(x, ((0, 0), (0, response)), constant_values=garbage)
    return x

  fields = {f.name: getattr(traj, f.name) for f in dataclasses.fields(traj)}
  return traj.replace(**{k: pad(k, v) for k, v in fields.items()})


def relative_gap(tree, expected) -> float:
  """Largest difference of two gradients over the norm of the second."""
  pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(expected), strict=True)
  gap = max(
    float(np.abs(np.asarray(x) - np.asarray(y)).max()) for x, y in pairs
  )
  squares = sum(
    float((np.asarray(x) ** 2).sum()) for x in jax.tree.leaves(expected)
  )
  return gap / np.sqrt(squares)
