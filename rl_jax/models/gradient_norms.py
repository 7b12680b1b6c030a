"""Norms of the gradients that each response has for the embeddings."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import types
from rl_jax.models import heads, transformer
from rl_jax.types import Array, Trajectories


def embedding_norms(
  model: transformer.ModelConfig, params: Any, traj: Trajectories
) -> Array:
  """|d/dE sum_t log pi(y_t | x, y_<t)| of each row, float32 [B].

  E is the embedding matrix, also where it is the output layer, and t runs over
  the trained tokens; norms are of Frobenius. One row after the other: a forward
  and a backward pass each, and no [B, V, D]. A row that trains nothing has 0.
  """
  on_BT = (traj.kind_BT != types.PAD).astype(jnp.float32)
  prompt_B = jnp.repeat(
    jnp.arange(traj.num_prompts),
    traj.group_size,
    total_repeat_length=traj.num_prompts * traj.group_size,
  )

  def one(row):
    prompt, response_T, on_T, mask_T = row
    tokens = transformer.Tokens(
      traj.prompt_NP[prompt][None],
      traj.prompt_mask_NP[prompt][None],
      response_T[None],
      on_T[None],
    )

    def log_probability(embed: Array):
      own = {**params, 'model': {**params['model'], 'embed': embed}}
      hidden_TD = transformer.states(own, model, tokens)[0]
      logp_TV = jax.nn.log_softmax(heads.logits(own, model, hidden_TD))
      said_T = jnp.take_along_axis(logp_TV, response_T[:, None], axis=1)[:, 0]
      return (said_T * mask_T).sum()

    gradient = jax.grad(log_probability)(params['model']['embed'])
    square = (gradient.astype(jnp.float32) ** 2).sum()
    return jnp.sqrt(jnp.where(mask_T.any(), square, 0.0))

  return jax.lax.map(one, (prompt_B, traj.response_BT, on_BT, traj.mask_BT))
