"""The loop over tokens: one per slot and step, in a batch that narrows.

A row is in one slot from its first token to its last. With fewer slots than
rows the others wait: when an eighth of the slots is free, as many waiting rows
take them. When none waits and the slots that are still in use fit into the next
smaller batch, only they continue, in that. Where attention reads all places,
many rows begin in a cache for a quarter of the tokens, and get room for all
when it is full or few of them are left. All widths are part of one program and
nothing waits for the host. What a row draws depends on its own counters
(randomness.py), so that none of this changes a token (tier E2).
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any, ClassVar

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models, randomness
from rl_jax.decoding.sampling import SamplingConfig, sample_token
from rl_jax.decoding.slots import Rows, Slots, shares_prompts
from rl_jax.models import decode_attention
from rl_jax.types import POLICY, Array

# Each width is its own loop in the program, which must be compiled.
MOST_WIDTHS = 8
# Layers of all these loops on CPU, where each compiles for 0.3 to 0.5 s. A
# small cache adds four loops.
MOST_LAYERS = 64
# On accelerators, where a loop compiles for seconds, however few its layers.
MOST_ON_ACCELERATORS = 2
# Layers of all these loops on GPU, 0.5 s each where they are not scanned. Of
# deeper models so few rows fit that a step takes the time of the weights, at
# each width.
MOST_LAYERS_ON_GPU = 80
# From all rows to the first narrower width.
LEAST_RATIO = 5 / 4
# Deep models have few widths, and each holds a quarter of the one before.
MOST_APART = 4
# Below these, compiling one more loop costs more than it saves.
NARROWEST = 8
FEWEST_TOKENS = 32
# Rows that come together, as a share of the slots; so many are idle at most.
REFILL_SHARE = 8
# With fewer widths down to half of the rows a small cache saves nothing.
FEWEST_WIDE = 3
# Of so long responses it does: in deep models, which have few widths, a step
# would read all places (on CPU half of them) for tokens that are not there.
LONG = 512


def most_widths(cfg: models.ModelConfig) -> int:
  """Returns how many widths a program may have; each must be compiled."""
  if cfg.platform.is_cpu:
    return min(MOST_WIDTHS, max(1, MOST_LAYERS // cfg.num_layers))
  held = 1 if models.scans_layers(cfg) else cfg.num_layers
  return min(MOST_ON_ACCELERATORS, max(1, MOST_LAYERS_ON_GPU // held))


def batch_widths(rows: int, new_tokens: int, most: int) -> list[int]:
  """The width to begin with and those to narrow to: 8, 16, 24, 32, 48, 64...

  Powers of two and one and a half of them: the products of 88 rows take the
  time of 96. If these are more than `most`, some are left out.
  """
  if new_tokens < FEWEST_TOKENS or rows < 2 * NARROWEST or most == 1:
    return [rows]
  doublings = range(rows.bit_length())
  fast = [NARROWEST, *(m * NARROWEST << k for k in doublings for m in (2, 3))]
  widths = [rows, *(w for w in reversed(fast) if LEAST_RATIO * w <= rows)]
  apart = min(max((len(widths) - 1) / (most - 1), 1), MOST_APART)
  places = [round(i * apart) for i in range(most)]
  return [widths[place] for place in places if place < len(widths)]


def starts_small(cfg: models.ModelConfig) -> bool:
  """Returns whether a small cache can save time: not where kernels attend.

  They read only the places that hold tokens, however many there are.
  """
  return not decode_attention.runs(cfg)


def wide_widths(widths: list[int], rows: int, max_tokens: int) -> list[int]:
  """The widths of a small cache, down to half of the rows; [] if it is none.

  Only the first, if these are few but responses long. Rows that wait for a slot
  would find it full.
  """
  wide = [width for width in widths if 2 * width >= widths[0]]
  small = models.first_places(max_tokens) < max_tokens and widths[0] == rows
  if not small or len(wide) >= FEWEST_WIDE:
    return wide if small else []
  long = max_tokens >= LONG and rows >= 2 * NARROWEST
  return wide[:1] if long else []


def decode(
  weights: Sequence[Any],
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  begun: Sequence[tuple[Array, models.PromptCache]],
  rows: Rows,
  *,
  new_tokens: int,
  slots: int,
  make: Callable | None = None,
) -> Rows:
  """Draws tokens until every row has ended.

  weights and `begun` (what prefill returned: [N, D] and a cache) are of the
  policy and of the others that transforms read. slots: rows at a time. make: of
  the decoder; None: Decoder.
  """
  total, max_tokens = rows.response_BT.shape
  slots = min(slots, total)
  group = total // begun[0][0].shape[0]
  make = make or Decoder
  decoder = make(weights, cfg, sampling, begun, group, max_tokens)
  widths = [slots]
  if sampling.may_end:  # without any, rows last until their limit together
    widths = batch_widths(slots, new_tokens, most_widths(cfg))
  wide = []
  if decoder.grows and starts_small(cfg):
    wide = wide_widths(widths, total, max_tokens)
  if wide:
    s = decoder.start(rows, slots, models.first_places(max_tokens))
    s = decoder.in_a_small_cache(s, widths, wide[-1])
    widths = widths[len(wide) - 1 :]
  else:
    s = decoder.start(rows, slots)
  for width, narrower in zip(widths, (*widths[1:], 0), strict=True):
    if width < s.row_W.shape[0]:
      s = s.narrowed(width, cfg)
    if width == slots < total:
      s = decoder.until_none_waits(s, narrower)
    else:
      s = decoder.until(s, narrower)
  return s.rows


@dataclasses.dataclass(frozen=True)
class Decoder:
  """The steps of decode; its arguments, and rows a group."""

  weights: Sequence[Any]
  cfg: models.ModelConfig
  sampling: SamplingConfig
  begun: Sequence[tuple[Array, models.PromptCache]]
  group: int
  max_tokens: int
  grows: ClassVar[bool] = True  # a small cache can become a large one

  def start(self, rows: Rows, slots: int, places: int | None = None) -> Slots:
    """The first rows have their first tokens; places: of a small cache."""
    row_W = jnp.arange(slots, dtype=jnp.int32)
    prompts = [prompt for _, prompt in self.begun]
    if not shares_prompts(rows.length_B.shape[0], slots):
      group_W = row_W // self.group
      prompts = [p.take(group_W, self.cfg) for p in prompts]
    return Slots(
      rows=self.first_tokens(rows, row_W, jnp.ones(slots, bool)),
      row_W=row_W,
      step_W=jnp.ones_like(row_W),
      caches=self.caches(prompts, slots, places),
      clock=jnp.int32(0),
      begun=jnp.int32(slots),
    )

  def caches(
    self, prompts: Sequence[models.PromptCache], slots: int, places: int | None
  ) -> tuple[models.Cache, ...]:
    """The empty caches of the slots."""
    extend = functools.partial(models.extend, self.cfg)
    return tuple(extend(p, slots, self.max_tokens, places) for p in prompts)

  def until(self, s: Slots, width: Array | int) -> Slots:
    """Steps until at most so many slots are going."""
    return lax.while_loop(lambda s: s.going().sum() > width, self.advance, s)

  def in_a_small_cache(self, s: Slots, widths: list[int], last: int) -> Slots:
    """Narrows down to `last` slots; those with room for all tokens.

    Rows that are still too many when the cache is full continue in a large one.
    """
    width, narrower, *_ = (*widths, 0)
    small = s.caches[0].places
    s = lax.while_loop(
      lambda s: (s.going().sum() > narrower) & (s.clock < small),
      self.advance,
      s,
    )
    if width == last:
      return s.grown(self.max_tokens, self.cfg.platform)

    def fit(s):
      return self.in_a_small_cache(
        s.narrowed(narrower, self.cfg), widths[1:], last
      )

    def are_too_many(s):
      s = s.grown(self.max_tokens, self.cfg.platform)
      for width in widths[1:]:
        if width >= last:
          s = self.until(s, width).narrowed(width, self.cfg)
      return s

    return lax.cond(s.going().sum() > narrower, are_too_many, fit, s)

  def until_none_waits(self, s: Slots, width: int) -> Slots:
    """The same, and while rows wait they take free slots."""
    slots = s.row_W.shape[0]
    count = max(1, slots // REFILL_SHARE)

    def body(s):
      most = jnp.where(s.waiting(), slots - count, width)
      return self.refill(self.until(s, most), count)

    return lax.while_loop(
      lambda s: s.waiting() | (s.going().sum() > width), body, s
    )

  def advance(self, s: Slots) -> Slots:
    """One token for every slot."""
    return self.fed(s, s.going(), 1)

  def fed(self, s: Slots, drawn_W: Array, more_W: Array | int) -> Slots:
    """Feeds the last tokens; slots in `drawn` draw, all advance by `more`."""
    token_W = s.rows.response_BT.at[s.row_W, s.step_W - 1].get(mode='clip')
    step = functools.partial(
      models.decode_step,
      cfg=self.cfg,
      token_B=token_W,
      step_B=self.step_fed(s),
      clock=s.clock,
      places=s.places(),
    )
    fed = [
      step(w, cache=cache)
      for w, cache in zip(self.weights, s.caches, strict=True)
    ]
    hidden, caches = zip(*fed, strict=True)
    return s.replace(
      rows=self.draw(s.rows, s.row_W, s.step_W, hidden, drawn_W),
      step_W=s.step_W + more_W,
      caches=caches,
      clock=s.clock + 1,
    )

  def step_fed(self, s: Slots) -> Array:
    """The token that each slot feeds.

    -1 for rows that have ended where kernels attend, which then read none of
    the keys of these rows; no one reads their states.
    """
    step_W = s.step_W - 1
    if not decode_attention.runs(self.cfg):
      return step_W
    return jnp.where(s.going(), step_W, -1)

  def refill(self, s: Slots, count: int) -> Slots:
    """Puts up to `count` waiting rows into free slots."""
    slots, total = s.row_W.shape[0], s.rows.length_B.shape[0]
    (slot_R,) = jnp.nonzero(~s.going(), size=count, fill_value=slots)
    row_R = s.begun + jnp.arange(count, dtype=jnp.int32)
    new_R = (slot_R < slots) & (row_R < total)
    slot_R = jnp.where(new_R, slot_R, slots)  # past the last one: dropped
    row_R = jnp.minimum(row_R, total - 1)

    def put(x_W, value_R):
      return x_W.at[slot_R].set(value_R, mode='drop')

    caches = s.caches
    if not s.shared:
      group_R = row_R // self.group
      prompts = [prompt.take(group_R, self.cfg) for _, prompt in self.begun]
      caches = tuple(
        cache.replace(prompt=jax.tree.map(put, cache.prompt, prompt))
        for cache, prompt in zip(caches, prompts, strict=True)
      )
    return s.replace(
      rows=self.first_tokens(s.rows, row_R, new_R),
      row_W=put(s.row_W, row_R),
      step_W=put(s.step_W, jnp.ones_like(row_R)),
      caches=caches,
      begun=s.begun + new_R.sum(),
    )

  def first_tokens(self, rows: Rows, row_W: Array, new_W: Array) -> Rows:
    """Those that the prompts predict."""
    own = self.begun[: len(self.weights)]  # a draft model comes after them
    hidden = [hidden_ND[row_W // self.group] for hidden_ND, _ in own]
    return self.draw(rows, row_W, jnp.zeros_like(row_W), hidden, new_W)

  def draw(self, rows, row_W, step_W, hidden, new_W) -> Rows:
    """Writes token `step` of those rows in new_W that are still going."""
    token_W, logp_W = self.sample(rows, row_W, step_W, hidden)
    new_W &= (step_W >= rows.given_B[row_W]) & (step_W < rows.limit_B[row_W])
    new_W &= ~rows.finished_B[row_W]
    ended_W = self.is_end(token_W)
    # Where nothing is to be written: past the last row.
    to_W = jnp.where(new_W, row_W, rows.length_B.shape[0])
    if rows.stop_B is not None:
      stop_W = self.sampling.follow(rows.stop_B[row_W], token_W)
      ended_W |= stop_W < 0
      stop_B = rows.stop_B.at[to_W].set(stop_W, mode='drop')
      rows = rows.replace(stop_B=stop_B)

    def write(x_BT, value_W):
      return x_BT.at[to_W, step_W].set(value_W, mode='drop')

    return rows.replace(
      response_BT=write(rows.response_BT, token_W),
      kind_BT=write(rows.kind_BT, jnp.full_like(token_W, POLICY)),
      logp_BT=write(rows.logp_BT, logp_W),
      length_B=rows.length_B.at[to_W].set(step_W + 1, mode='drop'),
      finished_B=rows.finished_B.at[to_W].set(ended_W, mode='drop'),
    )

  def sample(
    self, rows: Rows, row_R: Array, step_R: Array, hidden: Sequence[Array]
  ) -> tuple[Array, Array]:
    """Token `step` of the given rows, which states [R, D] predict; its logp."""
    return sample_token(
      self.drawn_from(hidden),
      randomness.token_uniform(rows.key_B[row_R], step_R),
      self.sampling.greedy,
      self.cfg.platform,
    )

  def drawn_from(self, hidden: Sequence[Array]) -> Array:
    """Logits [R, V] that tokens are drawn from, which states [R, D] predict."""
    logits = [
      models.logits(w, self.cfg, hidden_RD)
      for w, hidden_RD in zip(self.weights, hidden, strict=True)
    ]
    values_RH = None
    if self.sampling.reads_values:
      values_RH = models.all_values(self.weights[0], hidden[0])
    return self.sampling.transform(*logits, values_RH=values_RH)

  def is_end(self, token_R: Array) -> Array:
    """bool[R]: tokens that end a response."""
    ended_R = jnp.zeros(token_R.shape, bool)
    for eos in self.sampling.eos_ids:
      ended_R |= token_R == eos
    return ended_R
