"""The loop over tokens: one per row and step, in a batch that narrows.

When at most half of the rows are still going, they alone go on, in a batch of
half the width. All widths are part of one program and nothing waits for the
host. What a row draws depends on its own counters (randomness.py), so that
narrowing changes no token (tier E2).
"""

from collections.abc import Sequence
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models, randomness
from rl_jax.rollouts.sampling import SamplingConfig, sample_token
from rl_jax.types import POLICY, Array

# Each width is a loop of its own in the program, at the price of compiling it.
MOST_WIDTHS = 4
# Below these a loop more costs more than it saves.
NARROWEST = 16
FEWEST_TOKENS = 32


@struct.dataclass(kw_only=True)
class Rows:
  """What the rows of a batch hold so far, and where each of them stops."""

  response_BT: Array
  kind_BT: Array
  logp_BT: Array
  length_B: Array
  finished_B: Array
  given_B: Array  # tokens that were there before
  limit_B: Array  # tokens at most
  key_B: Array

  def going(self, step: Array) -> Array:
    """bool[B]: rows that get a token at `step` or later."""
    return (step < self.limit_B) & ~self.finished_B

  def take(self, row_W: Array) -> 'Rows':
    """Some of the rows."""
    return jax.tree.map(lambda x: x[row_W], self)

  def put(self, row_W: Array, rows: 'Rows') -> 'Rows':
    """Undoes take."""
    return jax.tree.map(lambda x, y: x.at[row_W].set(y), self, rows)


def batch_widths(rows: int, new_tokens: int) -> list[int]:
  """The width to begin with and those to narrow to, each half of the last."""
  widths = [rows]
  while (
    new_tokens >= FEWEST_TOKENS
    and len(widths) < MOST_WIDTHS
    and widths[-1] >= 2 * NARROWEST
  ):
    widths.append(-(-widths[-1] // 2))
  return widths


def decode(
  weights: Sequence[Any],
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  hidden: Sequence[Array],
  caches: Sequence[models.Cache],
  rows: Rows,
  *,
  new_tokens: int,
) -> Rows:
  """Draws tokens until every row has ended.

  weights, hidden [B, D] (which predict the first tokens) and caches: of one
  policy, or of the policy and its lagged copy.
  """

  def advance(carry):
    step, rows, caches = carry
    token_B = lax.dynamic_index_in_dim(
      rows.response_BT, step - 1, 1, keepdims=False
    )
    fed = [
      models.decode_step(w, cfg, token_B, step - 1, cache)
      for w, cache in zip(weights, caches, strict=True)
    ]
    hidden, caches = zip(*fed, strict=True)
    return step + 1, _draw(weights, cfg, sampling, step, hidden, rows), caches

  rows = _draw(weights, cfg, sampling, jnp.int32(0), hidden, rows)
  step, caches, wider = jnp.int32(1), tuple(caches), []
  widths = batch_widths(rows.length_B.shape[0], new_tokens)
  for width in (*widths[1:], 0):
    step, rows, caches = lax.while_loop(
      lambda carry, width=width: carry[1].going(carry[0]).sum() > width,
      advance,
      (step, rows, caches),
    )
    if width:
      # Stable: rows of a group stay neighbours.
      row_W = jnp.argsort(~rows.going(step), stable=True)[:width]
      wider.append((rows, row_W))
      rows = rows.take(row_W)
      caches = tuple(cache.take(row_W) for cache in caches)
  for all_rows, row_W in reversed(wider):
    rows = all_rows.put(row_W, rows)
  return rows


def _draw(weights, cfg, sampling, step, hidden, rows):
  """Writes token `step` of the rows that are still going."""
  logits = [
    models.logits(w, cfg, h_BD) for w, h_BD in zip(weights, hidden, strict=True)
  ]
  step_B = jnp.full(rows.length_B.shape, step)
  uniform_B = randomness.token_uniform(rows.key_B, step_B)
  token_B, logp_B = sample_token(
    sampling.transform(*logits), uniform_B, sampling.greedy
  )
  eos = jnp.asarray(sampling.eos_ids, jnp.int32)
  new_B = (step >= rows.given_B) & rows.going(step)
  ended_B = new_B & (token_B[:, None] == eos[None]).any(axis=1)

  def write(array_BT, value_B):
    old_B = lax.dynamic_index_in_dim(array_BT, step, 1, keepdims=False)
    value_B = jnp.where(new_B, value_B, old_B)
    return lax.dynamic_update_index_in_dim(array_BT, value_B, step, 1)

  return rows.replace(
    response_BT=write(rows.response_BT, token_B),
    kind_BT=write(rows.kind_BT, jnp.full_like(token_B, POLICY)),
    logp_BT=write(rows.logp_BT, logp_B),
    length_B=jnp.where(new_B, step + 1, rows.length_B),
    finished_B=rows.finished_B | ended_B,
  )
