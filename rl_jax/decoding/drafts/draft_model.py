"""Drafts of speculative decoding by a separate model.

With p the policy and q the draft model, after the same transforms, a guess
y ~ q is kept if u < p(y) / q(y), else the token is drawn from (p - q)_+; where
there is no guess it is drawn from p. So it is distributed as p, and the draft
is kept with probability sum_y min(p(y), q(y)), which no other rule exceeds.
Each place has its own numbers for the guess, u and the other draw, and which
of them count follows from the tokens before: draws depend only on counters, p
and q, never on slots, batches or the order of rows.

Source: Leviathan, Kalman & Matias, "Fast Inference from Transformers via
Speculative Decoding" (2211.17192), algorithm 1.
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models, randomness
from rl_jax.decoding.drafts import acceptance
from rl_jax.decoding.drafts.settings import REJECTION, DraftModel
from rl_jax.decoding.drafts.speculative import (
  Draft,
  Drawn,
  Places,
  SpeculativeDecoder,
  known_or_drafted,
)
from rl_jax.decoding.sampling import log_probs, sample_token
from rl_jax.decoding.slots import Slots
from rl_jax.types import Array

# Numbers of a place: of the guess, or of the token where there is none; of its
# acceptance; of the token in its place.
_GUESS, _ACCEPT, _OTHER = range(3)


class Drafting(struct.PyTreeNode, kw_only=True):
  """A draft so far: `drafted` tokens; stopped: rows that get no more."""

  draft: Draft
  drafted: Array
  log_accepted_W: Array
  stopped_W: Array
  cache: models.RowCache

  def with_guess(
    self, place: Array | int, token_W: Array, logp_W: Array, hidden_WD: Array
  ) -> 'Drafting':
    """And the guess of the K-th place, which hidden_WD predicts."""
    draft = self.draft
    return self.replace(
      draft=draft.replace(
        token_WK=draft.token_WK.at[:, place].set(token_W),
        logp_WK=draft.logp_WK.at[:, place].set(logp_W),
        hidden_WKD=draft.hidden_WKD.at[:, place].set(hidden_WD),
      ),
      drafted=self.drafted + 1,
    )


@dataclasses.dataclass(frozen=True)
class ModelDecoder(SpeculativeDecoder):
  """Guesses of a model, whose cache and prompts come last in `begun`.

  model_weights: as prepare_weights makes them. head: of acceptance, or None.
  """

  drafts: DraftModel
  model: models.ModelConfig
  model_weights: Any
  head: Any

  def caches(self, prompts, slots, places):
    """The cache of the draft model, which has its own positions."""
    make = functools.partial(models.for_blocks, self.model)
    own = super().caches(prompts[:-1], slots, places)
    return *own, make(prompts[-1], slots, self.max_tokens)

  def draft(self, s: Slots, known_W: Array, K: int) -> Draft:
    """See SpeculativeDecoder; the batch continues until all rows have
    stopped.
    """
    W, cache = s.row_W.shape[0], s.caches[-1]
    nothing = jnp.full((W, K), -1, jnp.int32)
    if not K:
      return Draft(token_WK=nothing, caches=(cache,))
    # If all of the last draft was right, two tokens have not been fed yet.
    first_W = jnp.clip(s.step_W - 2, 0, self.max_tokens - 2)
    place_W2 = first_W[:, None] + jnp.arange(2)[None]
    fed_W2 = known_or_drafted(s, known_W, nothing, place_W2)
    hidden_W2D, cache = self.feed(s, fed_W2, first_W, cache)
    last_W11 = (s.step_W - 1 - first_W)[:, None, None]
    hidden_WD = jnp.take_along_axis(hidden_W2D, last_W11, axis=1)[:, 0]
    token_W, logp_W = self.guess(s, s.step_W, hidden_WD)
    empty = Draft(
      token_WK=nothing,
      logp_WK=jnp.zeros((W, K)),
      hidden_WKD=jnp.zeros((W, K, hidden_WD.shape[1]), hidden_WD.dtype),
    )
    start = Drafting(
      draft=empty,
      drafted=jnp.int32(0),
      log_accepted_W=jnp.zeros(W) if self.head else logp_W,
      stopped_W=~s.going(),
      cache=cache,
    ).with_guess(0, token_W, logp_W, hidden_WD)
    end = lax.while_loop(
      lambda d: (d.drafted < K) & ~d.stopped_W.all(),
      functools.partial(self.one_more, s, known_W),
      start,
    )
    return end.draft.replace(caches=(end.cache,))

  def one_more(self, s: Slots, known_W: Array, d: Drafting) -> Drafting:
    """Feeds the last token of the draft and guesses the next one."""
    place_W = s.step_W + d.drafted - 1
    fed_W1 = known_or_drafted(s, known_W, d.draft.token_WK, place_W[:, None])
    # Beyond the last place the guess has no meaning, and is not read.
    at_W = jnp.minimum(place_W, self.max_tokens - 1)
    hidden_W1D, cache = self.feed(s, fed_W1, at_W, d.cache)
    hidden_WD = hidden_W1D[:, 0]
    token_W, logp_W = self.guess(s, place_W + 1, hidden_WD)
    token_W = jnp.where(d.stopped_W, -1, token_W)
    log_accepted_W = d.log_accepted_W
    if self.head:
      log_accepted_W += acceptance.log_accept(self.head, hidden_WD)
    stopped_W = d.stopped_W | acceptance.stops(
      log_accepted_W, d.drafted, self.drafts.threshold, self.drafts.least
    )
    if not self.head:  # known before the token is fed
      log_accepted_W += logp_W
    return d.with_guess(d.drafted, token_W, logp_W, hidden_WD).replace(
      log_accepted_W=log_accepted_W, stopped_W=stopped_W, cache=cache
    )

  def feed(self, s, token_WS, first_W, cache):
    """States and cache of the draft model after tokens."""
    return models.decode_block(
      self.model_weights,
      self.model,
      token_WS,
      first_W,
      cache,
      s.places(),
    )

  def guess(
    self, s: Slots, place_W: Array, hidden_WD: Array
  ) -> tuple[Array, Array]:
    """A token and its log-prob, by the random number of plain decoding."""
    return sample_token(
      self.guessed_from(hidden_WD),
      self.number(s, place_W, _GUESS),
      self.sampling.greedy,
    )

  def guessed_from(self, hidden_RD: Array) -> Array:
    """Logits of the draft model, after the transforms."""
    logits_RV = models.logits(self.model_weights, self.model, hidden_RD)
    return self.sampling.transform(logits_RV)

  def number(self, s: Slots, place_W: Array, draw: int) -> Array:
    """A uniform for the token at a place of each slot's row."""
    return randomness.token_uniform(s.rows.key_B[s.row_W], place_W, draw)

  def verified(
    self, s: Slots, place: Places, hidden: Sequence[Array], draft: Draft
  ) -> Drawn:
    """See SpeculativeDecoder: by rejection, but for equal tokens if greedy."""
    plain = self.drafts.coupling != REJECTION or self.sampling.greedy
    if plain or not draft.token_WK.shape[1]:
      return super().verified(s, place, hidden, draft)
    next_WS = place.next_WS
    (W, S), slot_W = next_WS.shape, jnp.arange(next_WS.shape[0])
    flat = [x.reshape(W * S, -1) for x in hidden]
    logits_RV = self.drawn_from(flat)
    # The guess of each place, if there is one: the first is that of `step`.
    at_WS = next_WS - s.step_W[:, None]
    take = functools.partial(jnp.take_along_axis, axis=1, mode='clip')
    guess_WS = take(draft.token_WK, at_WS)
    guessed_WS = (guess_WS >= 0) & (at_WS < draft.token_WK.shape[1])
    guess_WS = jnp.maximum(guess_WS, 0)
    logp_WS = log_probs(logits_RV, guess_WS.reshape(-1)).reshape(W, S)
    accept_WS = jax.vmap(
      lambda place_W: self.number(s, place_W, _ACCEPT), 1, 1
    )(next_WS)
    ratio_WS = jnp.exp(jnp.minimum(logp_WS - take(draft.logp_WK, at_WS), 0.0))
    kept_WS = guessed_WS & (accept_WS < ratio_WS)
    # Only the first token that is not kept is drawn; none after it counts.
    given_WS = next_WS < place.known_W[:, None]
    first_W = (~kept_WS & ~given_WS).argmax(axis=1)
    own_WV = logits_RV.reshape(W, S, -1)[slot_W, first_W]
    at_W11 = at_WS[slot_W, first_W][:, None, None]
    hidden_WD = take(draft.hidden_WKD, at_W11)[:, 0]
    token_W = self.drawn_anew(
      s,
      next_WS[slot_W, first_W],
      own_WV,
      self.guessed_from(hidden_WD),
      guessed_WS[slot_W, first_W],
    )

    def put(x_WS, x_W):
      return x_WS.at[slot_W, first_W].set(x_W)

    return Drawn(
      token_WS=put(guess_WS, token_W),
      logp_WS=put(logp_WS, log_probs(own_WV, token_W)),
      kept_WS=kept_WS,
    )

  def drawn_anew(self, s, place_W, own_WV, guess_WV, rejected_W):
    """Tokens from (p - q)_+ where a guess was rejected, else from p."""
    log_p_WV = jax.nn.log_softmax(own_WV.astype(jnp.float32))
    p_WV, q_WV = jnp.exp(log_p_WV), jax.nn.softmax(guess_WV.astype(jnp.float32))
    rest_WV = jnp.maximum(p_WV - q_WV, 0.0)
    # Where rounding leaves no rest, p and q are one.
    among_W1 = (rejected_W & (rest_WV > 0).any(axis=1))[:, None]
    uniform_W = jnp.where(
      rejected_W,
      self.number(s, place_W, _OTHER),
      self.number(s, place_W, _GUESS),
    )
    logits_WV = jnp.where(among_W1, jnp.log(rest_WV), log_p_WV)
    return sample_token(logits_WV, uniform_W)[0]
