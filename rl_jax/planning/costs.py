"""FLOP and bytes of the stages of an iteration, from shapes only."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import models
from rl_jax.models import decode_attention
from rl_jax.models.critic import has_own


@dataclasses.dataclass(frozen=True)
class Shape:
  """The size of one rollout, and of the update that follows it."""

  num_prompts: int
  group_size: int
  prompt_tokens: int
  new_tokens: int

  @property
  def rows(self) -> int:
    """Number of responses."""
    return self.num_prompts * self.group_size


def model_flops(cfg: models.ModelConfig, shape: Shape, stage: str) -> float:
  """FLOP of the model for one call of a stage; every row has full length.

  2 a weight and token forward, three times that for an update; of experts those
  that a token takes; attention over visible positions; a prompt is computed
  once a group. A critic with layers of its own is not run while sampling.
  """
  heads = cfg.num_heads * cfg.head_size
  kv = cfg.num_kv_heads * cfg.head_size
  mlp = 3 * cfg.mlp_size * (cfg.experts_per_token or 1) + cfg.num_experts
  layer = cfg.width * (2 * heads + 2 * kv + mlp)
  output = cfg.width * cfg.vocab_size
  N, B = shape.num_prompts, shape.rows
  P, T = shape.prompt_tokens, shape.new_tokens
  fed = N * P + B * (T - 1)  # the last token is never fed
  visible = N * P * (P + 1) / 2 + B * (T - 1) * (P + T / 2)
  layers = (
    2 * fed * cfg.num_layers * layer + 4 * visible * cfg.num_layers * heads
  )
  sampled = layers + 2 * B * T * output
  scored = sampled + layers * has_own(cfg)
  return {
    'generate': sampled,
    'score': scored,
    'update': 3 * scored,
    'step': sampled + 3 * scored,
  }[stage]


def resting_weights(cfg: models.ModelConfig, tokens: int = 1) -> int:
  """Weights of experts that so many tokens leave unchanged, at least."""
  taken = min(cfg.num_experts, tokens * cfg.experts_per_token)
  expert = 3 * cfg.width * cfg.mlp_size
  return cfg.num_layers * (cfg.num_experts - taken) * expert


def decode_bytes(cfg: models.ModelConfig, shape: Shape) -> dict[str, int]:
  """Bytes that one rollout moves after prefill; every row has full length.

  needed        weights and cache_needed
  weights       all weights in the compute dtype, once a step; of experts as
                many as rows can take
  cache_needed  the filled part of the cache; prompts once a group
  cache_read    what decode_step reads: the places of all new_tokens at every
                step, not just those filled; a kernel reads blocks, of which
                one is filled in part
  logits        one pass over the logits of every step; sampling makes several
  """
  item = jnp.dtype(cfg.compute_dtype).itemsize
  tree = models.specs(cfg)['model']
  if not cfg.tied_embeddings:  # a step reads one row of this table per token
    del tree['embed']
  leaves = jax.tree.leaves(tree, is_leaf=models.is_spec)
  weights = sum(int(np.prod(s.shape)) for s in leaves)
  weights = item * (weights - resting_weights(cfg, shape.rows))
  token = 2 * cfg.num_layers * cfg.num_kv_heads * cfg.head_size * item
  steps = shape.new_tokens - 1  # the first token comes from prefill
  prompts = steps * shape.num_prompts * shape.prompt_tokens * token
  live = shape.rows * token * steps * (steps + 1) // 2
  read = steps * steps
  if decode_attention.runs(cfg):
    block = decode_attention.BLOCK
    read = sum(-(-step // block) * block for step in range(1, steps + 1))
  return {
    'needed': steps * weights + prompts + live,
    'weights': steps * weights,
    'cache_needed': prompts + live,
    'cache_read': prompts + shape.rows * token * read,
    'logits': 4 * steps * shape.rows * cfg.vocab_size,
  }
