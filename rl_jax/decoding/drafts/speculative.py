"""Decoding with drafts: several tokens of a row in one forward pass.

A draft guesses the next K tokens of each row. They are fed at once after the
last token that is known. Every position is then sampled with its own random
numbers, as without drafts, and the tokens count up to the first that the draft
did not guess, which counts too: so a row gets 1 to K + 1 tokens, and these are
the tokens of plain decoding (tier E2), whatever the draft is. ModelDecoder can
couple draft and target otherwise.

Source: Leviathan, Kalman & Matias (2211.17192).
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple, cast

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from rl_jax import models, randomness
from rl_jax.decoding import decode
from rl_jax.decoding.drafts import acceptance
from rl_jax.decoding.drafts.settings import (
  REJECTION,
  DraftModel,
  Drafts,
  PreviousResponses,
  PromptLookup,
)
from rl_jax.decoding.generate import (
  Drafting,
  Limits,
  decoded_rows,
  filled,
  prepare_weights,
)
from rl_jax.decoding.sampling import SamplingConfig, log_probs, sample_token
from rl_jax.decoding.slots import Rows, Slots
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import POLICY, Array, Metrics, Trajectories

NOTHING = -1  # in a context: no token, equal to none


def repeated(context_WC: Array, end_W: Array, ngram: int, tokens: int) -> Array:
  """The next tokens of each row, guessed: int32[W, K], K = tokens.

  Of the places where the longest end of the row, up to ngram tokens, occurs
  before, the last one counts; the guess is what follows it, again and
  again if the row ends first. Without such a place it has no meaning.

  Source: prompt lookup (Saxena 2023, apoorvumang/prompt-lookup-decoding).

  Args:
    context_WC: tokens, NOTHING where there is none; those from end on are not
      read.
    end_W: the first place after each row, at least 1.
  """
  place_1C = jnp.arange(context_WC.shape[1])[None]
  end_W1 = end_W[:, None]
  same_WC, length_WC = True, jnp.zeros_like(context_WC)
  for back in range(ngram):
    last_W1 = jnp.take_along_axis(
      context_WC, end_W1 - 1 - back, axis=1, mode='clip'
    )
    earlier_WC = jnp.pad(
      context_WC, ((0, 0), (back, 0)), constant_values=NOTHING
    )[:, : context_WC.shape[1]]
    same_WC &= (earlier_WC == last_W1) & (last_W1 != NOTHING)
    length_WC += same_WC
  length_WC = jnp.where(place_1C < end_W1 - 1, length_WC, 0)
  longest_W1 = length_WC.max(axis=1, keepdims=True)
  found_WC = (length_WC == longest_W1) & (place_1C < end_W1 - 1)
  found_W1 = jnp.where(found_WC, place_1C, 0).max(axis=1, keepdims=True)
  period_W1 = jnp.maximum(end_W1 - 1 - found_W1, 1)
  next_WK = found_W1 + 1 + jnp.arange(tokens)[None] % period_W1
  return jnp.take_along_axis(context_WC, next_WK, axis=1, mode='clip')


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
  """The tokens [W, S] at places of the responses; 0 where there is no guess."""
  take = functools.partial(jnp.take_along_axis, axis=1, mode='clip')
  known_WS = take(s.rows.response_BT[s.row_W], place_WS)
  if not draft_WK.shape[1]:
    return known_WS
  draft_WS = take(draft_WK, place_WS - s.step_W[:, None])
  return jnp.where(
    place_WS < known_W[:, None], known_WS, jnp.maximum(draft_WS, 0)
  )


# The last response to each prompt: arrays of a checkpoint.
Memory = dict[str, Array]


def no_responses(prompts: int, max_tokens: int) -> dict[str, np.ndarray]:
  """No responses. id_M: the prompt of each; response_MT: NOTHING after it."""
  return {
    'id_M': np.full(prompts, NOTHING, np.int32),
    'response_MT': np.full((prompts, max_tokens), NOTHING, np.int32),
  }


def recalled(memory: Memory, prompt_id_N: Array) -> Array:
  """The last responses [N, T] to prompts; NOTHING for new ones."""
  place_N = prompt_id_N % memory['id_M'].shape[0]
  known_N = memory['id_M'][place_N] == prompt_id_N
  return jnp.where(known_N[:, None], memory['response_MT'][place_N], NOTHING)


def remembered(memory: Memory, traj: Trajectories) -> Memory:
  """The memory with the first response of each group.

  Of several groups in one place the last one counts.
  """
  size, G = memory['id_M'].shape[0], traj.group_size
  place_N = traj.prompt_id_N % size
  number_N = jnp.arange(traj.num_prompts)
  later_NN = number_N[:, None] < number_N[None]
  replaced_N = ((place_N[:, None] == place_N[None]) & later_NN).any(axis=1)
  place_N = jnp.where(replaced_N, size, place_N)  # past the last one: dropped
  position_1T = jnp.arange(traj.response_BT.shape[1])[None]
  response_NT = jnp.where(
    position_1T < traj.length_B[::G, None], traj.response_BT[::G], NOTHING
  )

  def put(x, new):
    return x.at[place_N].set(new, mode='drop')

  return {
    'id_M': put(memory['id_M'], traj.prompt_id_N),
    'response_MT': put(memory['response_MT'], response_NT),
  }


@dataclasses.dataclass(frozen=True)
class LookupDecoder(SpeculativeDecoder):
  """Guesses by repeated; context_NC: see context_of."""

  drafts: PromptLookup | PreviousResponses
  context_NC: Array

  def draft(self, s: Slots, known_W: Array, K: int) -> Draft:
    """See SpeculativeDecoder."""
    context_WC = self.context_NC[s.row_W // self.group]
    text = [context_WC, s.rows.response_BT[s.row_W]]
    guess_WK = repeated(
      jnp.concatenate(text, axis=1),
      context_WC.shape[1] + known_W,
      self.drafts.ngram,
      K,
    )
    # They begin at `known`, which is later where tokens were given.
    behind_WK = (s.step_W - known_W)[:, None] + jnp.arange(K)[None]
    guess_WK = jnp.take_along_axis(guess_WK, behind_WK, axis=1, mode='clip')
    return Draft(token_WK=guess_WK)


def context_of(
  drafts: PromptLookup,
  prompt_NP: Array,
  mask_NP: Array,
  previous_NT: Any = None,
) -> Array:
  """Tokens [N, C] before the responses in which drafts are looked up.

  previous_NT: earlier responses, which follow the end of the prompt, so
  that the beginning of a response is found too.
  """
  prompt_NP = jnp.where(mask_NP > 0, prompt_NP, NOTHING)
  if previous_NT is None:
    return prompt_NP
  tail = prompt_NP[:, max(0, prompt_NP.shape[1] - drafts.ngram + 1) :]
  end_N1 = jnp.full_like(prompt_NP[:, :1], NOTHING)
  return jnp.concatenate([tail, previous_NT, end_N1, prompt_NP], axis=1)


# Numbers of a place: of the guess, or of the token where there is none; of its
# acceptance; of the token in its place.
_GUESS, _ACCEPT, _OTHER = range(3)


class PartialDraft(struct.PyTreeNode, kw_only=True):
  """A draft so far: `drafted` tokens; stopped: rows that get no more."""

  draft: Draft
  drafted: Array
  log_accepted_W: Array
  stopped_W: Array
  cache: models.RowCache

  def with_guess(
    self, place: Array | int, token_W: Array, logp_W: Array, hidden_WD: Array
  ) -> 'PartialDraft':
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

  With p the policy and q the draft model, after the same transforms, a guess y
  ~ q is kept if u < p(y) / q(y), else the token is drawn from (p - q)_+; where
  there is no guess it is drawn from p. So it is distributed as p, and the draft
  is kept with probability sum_y min(p(y), q(y)), which no other rule exceeds.
  Each place has its own numbers for the guess, u and the other draw, and which
  of them count follows from the tokens before: draws depend only on counters, p
  and q, never on slots, batches or the order of rows.

  Source: Leviathan, Kalman & Matias, "Fast Inference from Transformers via
  Speculative Decoding" (2211.17192), algorithm 1.

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
    """See SpeculativeDecoder; the batch runs until all rows have stopped."""
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
    start = PartialDraft(
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

  def one_more(self, s: Slots, known_W: Array, d: PartialDraft) -> PartialDraft:
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
      self.cfg.platform,
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
    platform = self.cfg.platform
    logp_R = log_probs(logits_RV, guess_WS.reshape(-1), platform)
    logp_WS = logp_R.reshape(W, S)
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
      logp_WS=put(logp_WS, log_probs(own_WV, token_W, platform)),
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
    return sample_token(logits_WV, uniform_W, platform=self.cfg.platform)[0]


@dataclasses.dataclass(frozen=True)
class DraftSource:
  """The source of drafts; model: the shape of a DraftModel."""

  drafts: Drafts
  model: models.ModelConfig | None = None


class Kept(NamedTuple):
  """The arrays that drafts are made of.

  memory: of remembered, or {}. model_params: those of a DraftModel, with
  `head` if there is an acceptance head.
  """

  memory: Memory
  model_params: Any = None


def generate_with_drafts(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  kept: Kept,
  *,
  source: DraftSource,
  limits: Limits,
) -> tuple[Trajectories, Memory, Array]:
  """generate by speculative decoding: the same tokens (tier E2).

  Of a DraftModel that is coupled by rejection the tokens have the distribution
  of those of generate.

  Returns:
    traj, the memory with its responses, and int32[3]: forward passes of rows
    after their prompts, the tokens that these passes added, and the tokens
    that were drafted for them.
  """
  memory = kept.memory
  if isinstance(source.drafts, DraftModel):
    drafting = _by_model(source.drafts, source.model, kept.model_params, traj)
  else:
    drafting = _by_lookup(source.drafts, memory, traj)
  rows = decoded_rows(params, cfg, traj, key, sampling, limits, drafting)
  traj = filled(traj, rows)
  if memory:
    memory = remembered(memory, traj)
  assert rows.passes_B3 is not None
  return traj, memory, rows.passes_B3.sum(axis=0)


def _by_lookup(drafts, memory, traj) -> Drafting:
  """By what occurs before in the row or in the last response."""
  previous_NT = None
  if memory:
    previous_NT = recalled(memory, traj.prompt_id_N)

  def make(shared, context_NC, begun):
    del shared
    decoder = functools.partial(
      LookupDecoder, drafts=drafts, context_NC=context_NC
    )
    return decoder, begun

  prompts = (traj.prompt_NP, traj.prompt_mask_NP)
  context_NC = context_of(drafts, *prompts, previous_NT)
  return Drafting(make, by_prompt=context_NC)


def _by_model(drafts, model, params, traj) -> Drafting:
  """By another model."""

  def make(shared, own, begun):
    weights, head = shared
    decoder = functools.partial(
      ModelDecoder,
      drafts=drafts,
      model=model,
      model_weights=weights,
      head=head,
    )
    return decoder, [*begun, own]

  prompts = (traj.prompt_NP, traj.prompt_mask_NP)
  return Drafting(
    make,
    shared=(prepare_weights(params, model), params.get('head')),
    by_prompt=models.prefill(params, model, *prompts),
  )


class DraftState(Stateful):
  """The state that an engine's variants share; empty without drafts.

  memory: on the device, replicated; {} where no responses are kept.
  model_params: of a draft model, or None.
  """

  name: ClassVar[str] = 'drafts'

  def __init__(
    self,
    drafts: Drafts | None,
    max_tokens: int,
    mesh: jax.sharding.Mesh,
    model_params: Any = None,
  ):
    self.model_params = model_params
    self.memory: Memory = {}
    self._counts: list[jax.Array] = []
    if isinstance(drafts, PreviousResponses):
      arrays = no_responses(drafts.prompts, max_tokens)
      self.memory = processes.put(arrays, mesh_lib.replicated(mesh))

  def arrays(self) -> dict[str, Any]:
    """The memory, if there is one."""
    return {'drafts': self.memory} if self.memory else {}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    del host
    self.memory = arrays.get('drafts', self.memory)

  def kept(self) -> Kept:
    """The arrays of a call."""
    return Kept(self.memory, self.model_params)

  def count(self, counts_3: jax.Array) -> None:
    """Adds the counts of one call, see generate_with_drafts."""
    self._counts.append(counts_3)

  def metrics(self) -> Metrics:
    """Since the last call, means over the forward passes of rows.

    accepted_length: tokens that one added; drafted_length: drafted for it.
    """
    counts, self._counts = tuple(self._counts), []
    return _means(counts) if counts else {}


@jax.jit
def _means(counts):
  passes, tokens, drafted = jnp.stack(counts).sum(axis=0)
  passes = jnp.maximum(passes, 1)
  return {
    'rollout/accepted_length': tokens / passes,
    'rollout/drafted_length': drafted / passes,
  }


class GenerateWithDrafts:
  """The `generate` of an Engine with drafts; jitted: generate_with_drafts."""

  def __init__(self, jitted: Any, state: DraftState):
    self._jitted, self._state = jitted, state

  def __call__(
    self, params: Any, *, traj: Trajectories, key: jax.Array
  ) -> Trajectories:
    """Rows with their responses; counts and remembers."""
    traj, memory, counts_3 = self._jitted(
      params, traj=traj, key=key, kept=self._state.kept()
    )
    self._state.memory = memory
    self._state.count(counts_3)
    return traj

  def lower(self, params: Any, **arguments: Any) -> jax.stages.Lowered:
    """Lowers the jitted function, whose first result are the rows."""
    kept = self._state.kept()
    return self._jitted.lower(params, **arguments, kept=kept)
