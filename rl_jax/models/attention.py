"""Attention within prompts, and of responses to their group's prompt."""

from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import attention_blocks
from rl_jax.models.attention_blocks import MASKED, NOWHERE, Keys
from rl_jax.models.products import row_sums
from rl_jax.types import Array

# So many queries and keys have one product; more are attended by blocks.
WHOLE_QUERIES = 128
WHOLE_KEYS = 1024


class Limits(NamedTuple):
  """The limits of a layer's attention scores.

  cap: they become cap * tanh(score / cap); None: as they are. window: a query
  sees keys less than so many tokens before it; None: all before it.
  steady_sums: of their exponentials in decoding, see products.row_sums.
  """

  cap: float | None = None
  window: Array | None = None
  steady_sums: bool = False

  def near(self, distance: Array) -> Array | bool:
    """Returns whether keys so many tokens before a query are in its window."""
    return True if self.window is None else distance < self.window


NO_LIMITS = Limits()


def capped(x: Array, cap: float | None) -> Array:
  """cap * tanh(x / cap): soft limits of Gemma 2 (2408.00118)."""
  return x if cap is None else cap * jnp.tanh(x / cap)


def _product(equation: str, x: Array, y: Array) -> Array:
  return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


def _masked(scores: Array, mask: Array, limits: Limits) -> Array:
  scores = capped(scores, limits.cap)
  return jnp.where(jnp.broadcast_to(mask, scores.shape), scores, MASKED)


def cached(k: Array, v: Array) -> tuple[Array, Array]:
  """[..., T, J, K] -> keys [..., J, K, T] and values [..., J, T, K].

  In this order both products of a decoding step are plain row-major ones: on
  CPU they take a quarter of the time that [T, J, K] takes.
  """
  return jnp.moveaxis(k, -3, -1), jnp.swapaxes(v, -3, -2)


def attend_prompt(
  q_NPJRK, k_NPJK, v_NPJK, mask_NP, limits: Limits = NO_LIMITS
) -> Array:
  """Causal attention within each prompt; see attention_blocks for long ones."""
  length = mask_NP.shape[1]
  if length > WHOLE_QUERIES:
    place = jnp.arange(length, dtype=jnp.int32)[None, None]
    keys = Keys(
      k_NPJK[:, None],
      v_NPJK[:, None],
      _places(mask_NP),
      place,
      causal=True,
    )
    whole = attention_blocks.attend(q_NPJRK[:, None], (keys,), *limits[:2])
    return whole[:, 0]
  distance_QP = jnp.arange(length)[:, None] - jnp.arange(length)[None]
  causal_QP = (distance_QP >= 0) & limits.near(distance_QP)
  mask = causal_QP[None, None, :, None] & (mask_NP > 0)[:, None, None, None]
  scores = _masked(_product('nqjrk,npjk->njqrp', q_NPJRK, k_NPJK), mask, limits)
  weights = jax.nn.softmax(scores, axis=-1).astype(v_NPJK.dtype)
  return jnp.einsum('njqrp,npjk->nqjrk', weights, v_NPJK)


def _places(mask_NP):
  """The columns of the keys of prompts, [N, 1, P]; NOWHERE at padding."""
  column_P = jnp.arange(mask_NP.shape[1], dtype=jnp.int32)
  return jnp.where(mask_NP > 0, column_P[None], NOWHERE)[:, None]


def attend_whole_responses(
  q_NGSJRK,
  prompt,
  own,
  steps,
  limits: Limits,
  causal: bool,
  context_BS: Array | None = None,
) -> Array:
  """attend_response of all tokens of responses, by blocks if they are long.

  prompt: keys and values [N, P, J, K] and mask [N, P]. own: keys and values
  [B, T, J, K]. steps: the tokens of the queries [S] and of the keys [T]; keys
  of negative ones are never seen. causal: both are 0, 1, 2, .... context: the
  first token that each query sees, right after the prompt; None: 0.
  """
  step_S, step_T = steps
  if is_whole(step_S.shape[0], prompt[2].shape[1] + step_T.shape[0]):
    return _attend_few(q_NGSJRK, prompt, own, steps, limits, context_BS)
  N, G, S = q_NGSJRK.shape[:3]
  (kp, vp, mask_NP), (k, v) = prompt, own
  k, v = (x.reshape(N, G, *x.shape[1:]) for x in (k, v))
  step_S, step_T = (x.astype(jnp.int32)[None, None] for x in steps)
  first, after = None, step_S
  if context_BS is not None:
    first = context_BS.reshape(N, G, S)
    after = step_S - first
  parts = (
    Keys(
      kp[:, None],
      vp[:, None],
      _places(mask_NP),
      after + mask_NP.shape[1],
    ),
    Keys(
      k,
      v,
      jnp.where(step_T >= 0, step_T, NOWHERE),
      step_S,
      first,
      causal=causal,
    ),
  )
  return attention_blocks.attend(q_NGSJRK, parts, *limits[:2])


def is_whole(queries: int, keys: int) -> bool:
  """Returns whether responses are attended at once, not by blocks."""
  return queries <= WHOLE_QUERIES and keys <= WHOLE_KEYS


def _attend_few(q_NGSJRK, prompt, own, steps, limits, context_BS):
  """attend_whole_responses with scores of all queries and keys."""
  (kp, vp, mask_NP), (step_S, step_T) = prompt, steps
  distance_ST = step_S[:, None] - step_T[None]
  mask = (distance_ST >= 0) & limits.near(distance_ST)
  mask &= (step_T >= 0)[None]
  if context_BS is not None:
    mask = mask[None] & (step_T[None, None] >= context_BS[..., None])
    step_S = step_S[None] - context_BS
  return attend_response(
    q_NGSJRK,
    (*cached(kp, vp), mask_NP),
    (*cached(*own), mask),
    limits=limits,
    step=step_S,
  )


def attend_response(
  q_NGSJRK,
  prompt,
  own,
  places=None,
  later=(),
  limits: Limits = NO_LIMITS,
  step: Array | None = None,
  pool=None,
) -> Array:
  """Attention of responses to their group's prompt and to themselves.

  prompt: cached keys and values [N, J, ...] and mask [N, P]; one matrix
  product per group and key head, not G. own: cached keys and values
  [B, J, ...] and mask [S, T] or [B, S, T]. The two parts of the softmax are
  merged by their common maximum and sum. Every product is [x, J, rows, C] by
  [x, J, C, columns]: XLA on CPU has slow paths for most other orders.
  places: if the rows are not all rows of the groups in order: the place of each
  row in that order, [B], and the row at each place (any, if it is empty).
  later: blocks like own, read if some row attends to them; not differentiated.
  step: with a window, the token of each query in its response, [S] or [B, S];
  the masks of `own` and `later` have the window already.
  pool: further keys and values [M, J, ...] in blocks, the row [M] that owns
  each (any other number: none) and what it sees, [M, C]; not differentiated.
  """
  (pk, pv, mask_NP), (k, v, mask_ST) = prompt, own
  *lead, S, J, R, K = q_NGSJRK.shape
  B, N = k.shape[0], mask_NP.shape[0]
  G = (B if places is None else places[1].shape[0]) // N
  q_own = jnp.swapaxes(q_NGSJRK.reshape(B, S, J, R * K), 1, 2)
  q_own = q_own.reshape(B, J, S * R, K)

  by_group, by_row = movers(places, (N, G, J, S * R))
  step_NJM = None
  if limits.window is not None:
    assert step is not None  # a window needs the places of the queries
    step_BJSR = jnp.broadcast_to(step[..., None, :, None], (B, J, S, R))
    step_NJM = by_group(step_BJSR.reshape(B, J, S * R))
  prompt_scores = _prompt_scores(by_group(q_own), pk, mask_NP, step_NJM, limits)
  # [B, J, S, R, T]: in the shape of the product XLA on CPU would compute the
  # exponential in place, possibly without vector instructions.
  scores = _product('bjmk,bjkt->bjmt', q_own, k).reshape(B, J, S, R, -1)
  scores = _masked(scores, mask_ST[..., None, :, None, :], limits)
  both = (prompt_scores, pv), (scores, v)
  attended = _both_parts(*both, (by_group, by_row), limits)
  for block in later:
    attended = _with_block(attended, q_own, block, limits)
  if pool is not None:
    attended = _with_pool(attended, q_own, pool, limits)
  _, total, out = attended
  out = (out / total[..., None]).astype(q_NGSJRK.dtype)
  out = jnp.swapaxes(out.reshape(B, J, S, R * K), 1, 2)
  return out.reshape(*lead, S, J, R, K)


def movers(places, sizes):
  """Returns what brings M queries of each row to its group, and back; see
  places.
  """
  place_B, row_M = (None, None) if places is None else places
  N, G, J, M = sizes

  def by_group(x):
    """[B, J, M, ...] -> [N, J, G * M, ...]."""
    x = x if places is None else x[row_M]
    x = jnp.swapaxes(x.reshape(N, G, *x.shape[1:]), 1, 2)
    return x.reshape(N, J, G * M, *x.shape[4:])

  def by_row(x):
    """The inverse of by_group."""
    x = jnp.swapaxes(x.reshape(N, J, G, M, *x.shape[3:]), 1, 2)
    x = x.reshape(N * G, J, M, *x.shape[4:])
    return x if places is None else x[place_B]

  return by_group, by_row


def _prompt_scores(q_NJMK, keys, mask_NP, step_NJM, limits):
  """Scores of a group's queries with its prompt, [N, J, M, P].

  step_NJM: the tokens of the queries, if there is a window. Prompts end in the
  last column, so that distances do not depend on their lengths.
  """
  mask = (mask_NP > 0)[:, None, None]
  if step_NJM is not None:
    P = mask_NP.shape[1]
    back_P = (P - jnp.arange(P))[None, None, None]
    mask &= limits.near(step_NJM[..., None] + back_P)
  return _masked(_product('njmk,njkp->njmp', q_NJMK, keys), mask, limits)


def _both_parts(prompt, own, moved, limits):
  """Maximum, sum and products of the softmax over prompt and response."""
  (prompt_scores, pv), (scores, v), (by_group, by_row) = prompt, own, moved
  B, J, S, R, _ = scores.shape
  peak = lax.stop_gradient(
    jnp.maximum(
      by_row(prompt_scores.max(-1)), scores.max(-1).reshape(B, J, S * R)
    )
  )
  prompt_weights = jnp.exp(prompt_scores - by_group(peak)[..., None])
  weights = jnp.exp(scores - peak.reshape(B, J, S, R, 1))
  weights = weights.reshape(B, J, S * R, -1)
  prompt_total, total = (
    row_sums(x, limits.steady_sums) for x in (prompt_weights, weights)
  )
  total = by_row(prompt_total) + total
  out = _product('bjmt,bjtk->bjmk', weights.astype(v.dtype), v) + by_row(
    _product('njmp,njpk->njmk', prompt_weights.astype(pv.dtype), pv)
  )
  return peak, total, out


def _with_block(attended, q_BJMK, block, limits):
  """Maximum, sum and products of a softmax, extended by a block of keys.

  block: keys, values and mask. It is skipped if it is masked for all rows.
  """
  k_BJKT, v_BJTK, mask_BST = block

  def attend(peak, total, out, k_BJKT, v_BJTK):
    scores = _product('bjmk,bjkt->bjmt', q_BJMK, k_BJKT)
    mask_BMT = jnp.repeat(
      mask_BST, scores.shape[2] // mask_BST.shape[1], axis=1
    )
    scores = _masked(scores, mask_BMT[:, None], limits)
    top = jnp.maximum(peak, scores.max(-1))
    weights = jnp.exp(scores - top[..., None])
    old = jnp.exp(peak - top)
    products = _product('bjmt,bjtk->bjmk', weights.astype(v_BJTK.dtype), v_BJTK)
    total = total * old + row_sums(weights, limits.steady_sums)
    return top, total, out * old[..., None] + products

  def skip(peak, total, out, *_):
    return (peak, total, out)

  return lax.cond(mask_BST.any(), attend, skip, *attended, k_BJKT, v_BJTK)


def _with_pool(attended, q_BJMK, pool, limits):
  """The same, extended by N blocks, each of the keys of one row.

  pool: keys, values, owners and what is seen; see attend_response. Sums over
  the blocks of a row are products with 0 and 1: their order is fixed, other
  than that of scattered additions.
  """
  k_NJKC, v_NJCK, owner_N, seen_NC = pool
  peak, total, out = attended

  def of_owner(x):
    return x.at[owner_N].get(mode='clip')

  scores = _product('njmk,njkc->njmc', of_owner(q_BJMK), k_NJKC)
  scores = _masked(scores, seen_NC[:, None, None], limits)
  own_BN = owner_N[None] == jnp.arange(q_BJMK.shape[0])[:, None]
  tops = jnp.where(own_BN[..., None, None], scores.max(-1)[None], MASKED)
  top = jnp.maximum(peak, tops.max(axis=1))
  weights = jnp.exp(scores - of_owner(top)[..., None])
  products = _product('njmc,njck->njmk', weights.astype(v_NJCK.dtype), v_NJCK)

  def by_row(x):
    return jnp.einsum(
      'bn,n...->b...',
      own_BN.astype(x.dtype),
      x,
      precision=lax.Precision.HIGHEST,
    )

  old = jnp.exp(peak - top)
  total = total * old + by_row(weights.sum(-1))
  return top, total, out * old[..., None] + by_row(products)
