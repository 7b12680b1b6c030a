"""Drafts of speculative decoding by a model of their own."""

import dataclasses
import functools
from typing import Any

from flax import struct
from jax import lax
import jax.numpy as jnp

from rl_jax import models, randomness
from rl_jax.rollouts import acceptance
from rl_jax.rollouts.drafts import DraftModel
from rl_jax.rollouts.sampling import sample_token
from rl_jax.rollouts.slots import Slots
from rl_jax.rollouts.speculative import SpeculativeDecoder, known_or_drafted
from rl_jax.types import Array


class Drafting(struct.PyTreeNode, kw_only=True):
  """A draft so far: `drafted` tokens; stopped: rows that get no more."""

  token_WK: Array
  drafted: Array
  log_accepted_W: Array
  stopped_W: Array
  cache: models.RowCache


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
    """That of the draft model has positions of its own."""
    make = functools.partial(models.for_blocks, self.model)
    own = super().caches(prompts[:-1], slots, places)
    return *own, make(prompts[-1], slots, self.max_tokens)

  def draft(
    self, s: Slots, known_W: Array, K: int
  ) -> tuple[Array, tuple[models.Cache, ...]]:
    """See SpeculativeDecoder; the batch goes on until all rows have stopped."""
    W, cache = s.row_W.shape[0], s.caches[-1]
    if not K:
      return jnp.zeros((W, 0), jnp.int32), (cache,)
    # If all of the last draft was right, two tokens have not been fed yet.
    first_W = jnp.clip(s.step_W - 2, 0, self.max_tokens - 2)
    place_W2 = first_W[:, None] + jnp.arange(2)[None]
    nothing = jnp.full((W, K), -1, jnp.int32)
    fed_W2 = known_or_drafted(s, known_W, nothing, place_W2)
    hidden_W2D, cache = self.feed(s, fed_W2, first_W, cache)
    last_W11 = (s.step_W - 1 - first_W)[:, None, None]
    hidden_WD = jnp.take_along_axis(hidden_W2D, last_W11, axis=1)[:, 0]
    token_W, logp_W = self.guess(s, s.step_W, hidden_WD)
    start = Drafting(
      token_WK=nothing.at[:, 0].set(token_W),
      drafted=jnp.int32(1),
      log_accepted_W=jnp.zeros(W) if self.head else logp_W,
      stopped_W=~s.going(),
      cache=cache,
    )
    end = lax.while_loop(
      lambda d: (d.drafted < K) & ~d.stopped_W.all(),
      functools.partial(self.one_more, s, known_W),
      start,
    )
    return end.token_WK, (end.cache,)

  def one_more(self, s: Slots, known_W: Array, d: Drafting) -> Drafting:
    """Feeds the last token of the draft and guesses the next one."""
    place_W = s.step_W + d.drafted - 1
    fed_W1 = known_or_drafted(s, known_W, d.token_WK, place_W[:, None])
    # Beyond the last place the guess has no meaning, and is not read.
    at_W = jnp.minimum(place_W, self.max_tokens - 1)
    hidden_W1D, cache = self.feed(s, fed_W1, at_W, d.cache)
    token_W, logp_W = self.guess(s, place_W + 1, hidden_W1D[:, 0])
    token_W = jnp.where(d.stopped_W, -1, token_W)
    log_accepted_W = d.log_accepted_W
    if self.head:
      log_accepted_W += acceptance.log_accept(self.head, hidden_W1D[:, 0])
    stopped_W = d.stopped_W | acceptance.stops(
      log_accepted_W, d.drafted, self.drafts.threshold, self.drafts.least
    )
    if not self.head:  # known before the token is fed
      log_accepted_W += logp_W
    return d.replace(
      token_WK=d.token_WK.at[:, d.drafted].set(token_W),
      drafted=d.drafted + 1,
      log_accepted_W=log_accepted_W,
      stopped_W=stopped_W,
      cache=cache,
    )

  def feed(self, s, token_WS, first_W, cache):
    """States and cache of the draft model after tokens."""
    return models.decode_block(
      *(self.model_weights, self.model),
      *(token_WS, first_W, cache, s.places()),
    )

  def guess(
    self, s: Slots, place_W: Array, hidden_WD: Array
  ) -> tuple[Array, Array]:
    """A token and its log-prob, by the random number of the policy's token."""
    logits = models.logits(self.model_weights, self.model, hidden_WD)
    uniform_W = randomness.token_uniform(s.rows.key_B[s.row_W], place_W)
    return sample_token(
      self.sampling.transform(logits), uniform_W, self.sampling.greedy
    )
