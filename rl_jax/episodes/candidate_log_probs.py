"""Log-probs of given answers to questions, under a frozen model."""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.models import heads, transformer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes


@dataclasses.dataclass(frozen=True)
class LogProbs:
  """Reads log p(candidate | question), the sum over the candidate's tokens.

  rows: pairs a call. sizes: tokens of questions and of candidates.
  """

  model: transformer.ModelConfig
  mesh: jax.sharding.Mesh
  pad_id: int
  rows: int
  sizes: tuple[int, int]

  def __call__(
    self, params: Any, pairs: Sequence[tuple[list[int], list[int]]]
  ) -> list[float]:
    """A number for each (question, candidate)."""
    found = []
    for start in range(0, len(pairs), self.rows):
      own = pairs[start : start + self.rows]
      arrays = processes.put(self._arrays(own), mesh_lib.rows(self.mesh))
      found += processes.read(self._jitted(params, *arrays)).tolist()[
        : len(own)
      ]
    return found

  def _arrays(self, pairs):
    """Questions end, and candidates begin, at the same place."""
    P, T = self.sizes
    ids = np.full((self.rows, P + T), self.pad_id, np.int32)
    mask = np.zeros((self.rows, P + T), np.float32)
    mask[:, P - 1] = 1.0  # of rows that fill the call, too
    for row, (question, candidate) in enumerate(pairs):
      here = slice(P - len(question), P + len(candidate))
      ids[row, here] = [*question, *candidate]
      mask[row, here] = 1.0
    return ids[:, :P], mask[:, :P], ids[:, P:], mask[:, P:]

  @functools.cached_property
  def _jitted(self):
    read = functools.partial(log_probs_behind, self.model)
    return jax.jit(read, out_shardings=mesh_lib.replicated(self.mesh))


def log_probs_behind(
  model: transformer.ModelConfig,
  params: Any,
  prompt_NP: jax.Array,
  prompt_mask_NP: jax.Array,
  response_NT: jax.Array,
  mask_NT: jax.Array,
) -> jax.Array:
  """sum_t mask_t log p(response_t | prompt, response before t), [N]."""
  hidden_NTD = transformer.forward(
    params, model, prompt_NP, prompt_mask_NP, response_NT, mask_NT
  )

  def add(total_N, token):  # one token at a time: logits are wide
    hidden_ND, id_N, mask_N = token
    logp_NV = jax.nn.log_softmax(heads.logits(params, model, hidden_ND))
    logp_N = jnp.take_along_axis(logp_NV, id_N[:, None], axis=-1)[:, 0]
    return total_N + jnp.where(mask_N > 0, logp_N, 0.0), None

  tokens = (jnp.swapaxes(x, 0, 1) for x in (hidden_NTD, response_NT, mask_NT))
  start_N = jnp.zeros(len(prompt_NP), jnp.float32)
  return jax.lax.scan(add, start_N, tuple(tokens))[0]
