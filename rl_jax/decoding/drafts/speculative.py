"""Decoding with drafts: several tokens of a row in one forward pass.

A draft guesses the next K tokens of each row. They are fed at once after the
last token that is known. Every position is then sampled with its own random
numbers, as without drafts, and the tokens count up to the first that the draft
did not guess, which counts too: so a row gets 1 to K + 1 tokens, and these are
the tokens of plain decoding (tier E2), whatever the draft is. ModelDecoder can
couple draft and target otherwise.

Source: Leviathan, Kalman & Matias (2211.17192).
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any, ClassVar, cast

from flax import struct
import jax.numpy as jnp

from rl_jax import models
from rl_jax.decoding import decode
from rl_jax.decoding.drafts.settings import Drafts
from rl_jax.decoding.slots import Rows, Slots
from rl_jax.types import POLICY, Array


class Draft(struct.PyTreeNode, kw_only=True):
  """Guesses of the next tokens of each slot; negative where there is none.

  caches: those of a Slots after the ones of the weights. logp_WK, hidden_WKD:
  of guesses of a model, their log-probs and the states that predict them.
  """

  token_WK: Array
  caches: tuple[models.Cache, ...] = ()
  logp_WK: Any = None  # an array, of a model
  hidden_WKD: Any = None


class Places(struct.PyTreeNode, kw_only=True):
  """Places of responses in one pass: fed_WS are the tokens before next_WS.

  known_W: tokens that each row has, given ones too.
  """

  next_WS: Array
  fed_WS: Array
  known_W: Array


class Drawn(struct.PyTreeNode, kw_only=True):
  """Tokens for next_WS; kept_WS: the draft guessed it, so the next counts."""

  token_WS: Array
  logp_WS: Array
  kept_WS: Array


@dataclasses.dataclass(frozen=True)
class SpeculativeDecoder(decode.Decoder):
  """Decoder, but a step gives several tokens; a subclass makes the drafts."""

  drafts: Drafts
  grows: ClassVar[bool] = False

  def caches(
    self, prompts: Sequence[models.PromptCache], slots: int, places: int | None
  ) -> tuple[models.Cache, ...]:
    """Token t in column t, as rows are at different tokens."""
    del places
    make = functools.partial(models.for_blocks, self.cfg)
    return tuple(make(prompt, slots, self.max_tokens) for prompt in prompts)

  def draft(self, s: Slots, known_W: Array, K: int) -> Draft:
    """Guesses of tokens step, step + 1, ...; before known they are not read."""
    raise NotImplementedError

  def verified(
    self,
    s: Slots,
    place: Places,
    hidden: Sequence[Array],
    draft: Draft,
  ) -> Drawn:
    """A token for each place, and whether the draft guessed it.

    hidden: states [W, S, D] that predict the tokens, of the policy and of the
    others that transforms read.
    """
    del draft

    def flat(x):
      return x.reshape(-1, *x.shape[2:])

    token_R, logp_R = self.sample(
      s.rows,
      jnp.repeat(s.row_W, place.next_WS.shape[1]),
      flat(place.next_WS),
      [flat(hidden_WSD) for hidden_WSD in hidden],
    )
    token_WS = token_R.reshape(place.next_WS.shape)
    # The last one has no guess; nothing comes after it.
    guess_WS = jnp.concatenate([place.fed_WS[:, 1:], token_WS[:, -1:]], axis=1)
    return Drawn(
      token_WS=token_WS,
      logp_WS=logp_R.reshape(token_WS.shape),
      kept_WS=token_WS == guess_WS,
    )

  def advance(self, s: Slots) -> Slots:
    """One to K + 1 tokens for every slot."""
    K = min(self.drafts.width(s.row_W.shape[0]), self.max_tokens - 1)
    known_W = jnp.maximum(s.step_W, s.rows.given_B[s.row_W])
    draft = self.draft(s, known_W, K)
    # Near the end of the cache, tokens that have been fed are fed again.
    first_W = jnp.minimum(s.step_W, self.max_tokens - K) - 1
    place_WS = first_W[:, None] + jnp.arange(K + 1)[None]
    place = Places(
      next_WS=place_WS + 1,
      fed_WS=known_or_drafted(s, known_W, draft.token_WK, place_WS),
      known_W=known_W,
    )
    own = cast(tuple[models.RowCache, ...], s.caches[: len(self.weights)])
    fed = [
      models.decode_block(w, self.cfg, place.fed_WS, first_W, cache, s.places())
      for w, cache in zip(self.weights, own, strict=True)
    ]
    hidden, caches = zip(*fed, strict=True)
    drawn = self.verified(s, place, hidden, draft)
    drafted_W = (draft.token_WK >= 0).sum(axis=1)
    rows, step_W = self.accepted(s, place, drawn, drafted_W)
    caches = (*caches, *draft.caches)
    return s.replace(rows=rows, step_W=step_W, caches=caches)

  def accepted(
    self, s: Slots, place: Places, drawn: Drawn, drafted_W: Array
  ) -> tuple[Rows, Array]:
    """(rows with their new tokens, the next step of each slot).

    drafted_W: tokens, to be counted.
    """
    rows, place_WS, token_WS = s.rows, place.next_WS, drawn.token_WS
    limit_W = rows.limit_B[s.row_W]
    stop_W = None if rows.stop_B is None else rows.stop_B[s.row_W]
    going_W = right_W = s.going()
    finished_W = jnp.zeros_like(going_W)
    new, step_W = [], s.step_W
    for i in range(token_WS.shape[1]):
      place_W, token_W = place_WS[:, i], token_WS[:, i]
      given_W = place_W < place.known_W
      new_W = right_W & ~given_W & (place_W < limit_W)
      end_W = self.is_end(token_W)
      if stop_W is not None:
        after_W = self.sampling.follow(stop_W, token_W)
        end_W |= after_W < 0
        stop_W = jnp.where(new_W, after_W, stop_W)
      finished_W |= new_W & end_W
      step_W = jnp.where(
        going_W & (given_W | new_W), jnp.maximum(step_W, place_W + 1), step_W
      )
      right_W &= given_W | (drawn.kept_WS[:, i] & ~end_W)
      new.append(new_W)
    new_WS = jnp.stack(new, axis=1)
    none = rows.length_B.shape[0]  # past the last row: nothing is written
    to_WS = jnp.where(new_WS, s.row_W[:, None], none)
    to_W = jnp.where(new_WS.any(axis=1), s.row_W, none)

    def write(x_BT, value_WS):
      return x_BT.at[to_WS, place_WS].set(value_WS, mode='drop')

    def put(x_B, value_W):
      return x_B.at[to_W].set(value_W, mode='drop')

    assert rows.passes_B3 is not None
    passes_W3 = jnp.stack(
      [jnp.ones_like(step_W), new_WS.sum(axis=1), drafted_W], axis=1
    )
    rows = rows.replace(
      response_BT=write(rows.response_BT, token_WS),
      kind_BT=write(rows.kind_BT, jnp.full_like(token_WS, POLICY)),
      logp_BT=write(rows.logp_BT, drawn.logp_WS),
      length_B=put(rows.length_B, step_W),
      finished_B=put(rows.finished_B, finished_W),
      stop_B=None if stop_W is None else put(rows.stop_B, stop_W),
      passes_B3=rows.passes_B3.at[to_W].add(passes_W3, mode='drop'),
    )
    return rows, step_W


def known_or_drafted(
  s: Slots, known_W: Array, draft_WK: Array, place_WS: Array
) -> Array:
  """The tokens [W, S] at places of the responses; 0 where nobody guesses."""
  take = functools.partial(jnp.take_along_axis, axis=1, mode='clip')
  known_WS = take(s.rows.response_BT[s.row_W], place_WS)
  if not draft_WK.shape[1]:
    return known_WS
  draft_WS = take(draft_WK, place_WS - s.step_W[:, None])
  return jnp.where(
    place_WS < known_W[:, None], known_WS, jnp.maximum(draft_WS, 0)
  )
