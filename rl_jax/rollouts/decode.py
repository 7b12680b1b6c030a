"""The loop over tokens: one per slot and step, in a batch that narrows.

A row is in one slot from its first token to its last. With fewer slots than
rows the others wait: when an eighth of the slots is free, as many waiting rows
take them. When none waits and the slots that are still in use fit into the next
smaller batch, they alone go on, in that. All widths are part of one program and
nothing waits for the host. What a row draws depends on its own counters
(randomness.py), so that neither changes a token (tier E2).
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
from rl_jax.rollouts.sampling import SamplingConfig, sample_token
from rl_jax.types import POLICY, Array

# Each width is a loop of its own in the program, at the price of compiling it.
MOST_WIDTHS = 8
# Layers of all these loops: each compiles for 0.3 to 0.5 s.
MOST_LAYERS = 64
# From all rows to the first narrower width.
LEAST_RATIO = 5 / 4
# Deep models have few widths, and each holds a quarter of the one before.
MOST_APART = 4
# Below these a loop more costs more than it saves.
NARROWEST = 8
FEWEST_TOKENS = 32
# Rows attend to the prompts that their groups share in the places of all rows;
# of more places a row it is cheaper to give each row its prompt to itself.
MOST_PLACES = 4
# Rows that come together, as a share of the slots; so many are idle at most.
REFILL_SHARE = 8


@struct.dataclass(kw_only=True)
class Rows:
  """What the rows hold so far, and where each of them stops."""

  response_BT: Array
  kind_BT: Array
  logp_BT: Array
  length_B: Array
  finished_B: Array
  given_B: Array  # tokens that were there before
  limit_B: Array  # tokens at most
  key_B: Array


@struct.dataclass(kw_only=True)
class Slots:
  """The rows that are being decoded, all rows, and whose turn is next."""

  rows: Rows
  row_W: Array  # the row of each slot
  step_W: Array  # the token that it gets next
  caches: tuple[models.Cache, ...]
  clock: Array  # steps so far; their keys and values lie in a ring
  begun: Array  # rows that have had a slot: the first ones

  def going(self) -> Array:
    """bool[W]: slots whose row gets another token."""
    limit_W = self.rows.limit_B[self.row_W]
    return (self.step_W < limit_W) & ~self.rows.finished_B[self.row_W]

  @property
  def num_rows(self) -> int:
    """All rows, with and without a slot."""
    return self.rows.length_B.shape[0]

  @property
  def shared(self) -> bool:
    """True if the prompts are those of all groups, not one for each slot."""
    return shares_prompts(self.num_rows, self.row_W.shape[0])

  def waiting(self) -> Array:
    """bool: rows without a slot are left."""
    return self.begun < self.num_rows

  def places(self) -> tuple[Array, Array] | None:
    """Of attend_response: None if no row looks for its prompt's place."""
    slots = self.row_W.shape[0]
    if not self.shared or slots == self.num_rows:
      return None
    slot_M = jnp.zeros(self.num_rows, jnp.int32)
    return self.row_W, slot_M.at[self.row_W].set(jnp.arange(slots))

  def narrowed(self, width: int) -> 'Slots':
    """The slots that are going, in a batch of `width`."""
    # Stable: rows of a group stay neighbours.
    slot_W = jnp.argsort(~self.going(), stable=True)[:width]
    row_W = self.row_W[slot_W]
    caches = [cache.take(slot_W) for cache in self.caches]
    if not shares_prompts(self.num_rows, width):
      group = self.num_rows // caches[0].prompt.num_prompts
      prompt_W = row_W // group if self.shared else slot_W
      caches = [c.replace(prompt=c.prompt.take(prompt_W)) for c in caches]
    return self.replace(
      row_W=row_W, step_W=self.step_W[slot_W], caches=tuple(caches)
    )


def shares_prompts(rows: int, width: int) -> bool:
  """True if `width` of all rows attend in the places of all of them."""
  return rows <= MOST_PLACES * width


def batch_widths(rows: int, new_tokens: int, num_layers: int) -> list[int]:
  """The width to begin with and those to narrow to: 8, 16, 24, 32, 48, 64...

  Powers of two and one and a half of them: the products of 88 rows take the
  time of 96. If these are more than may be compiled, some are left out.
  """
  most = min(MOST_WIDTHS, max(1, MOST_LAYERS // num_layers))
  if new_tokens < FEWEST_TOKENS or rows < 2 * NARROWEST or most == 1:
    return [rows]
  doublings = range(rows.bit_length())
  fast = [NARROWEST, *(m * NARROWEST << k for k in doublings for m in (2, 3))]
  widths = [rows, *(w for w in reversed(fast) if LEAST_RATIO * w <= rows)]
  apart = min(max((len(widths) - 1) / (most - 1), 1), MOST_APART)
  places = [round(i * apart) for i in range(most)]
  return [widths[place] for place in places if place < len(widths)]


def decode(
  weights: Sequence[Any],
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  begun: Sequence[tuple[Array, models.PromptCache]],
  rows: Rows,
  *,
  max_tokens: int,
  new_tokens: int,
  slots: int,
) -> Rows:
  """Draws tokens until every row has ended.

  weights and begun (what prefill returned: [N, D] and a cache) are of one
  policy, or of the policy and its lagged copy. slots: rows at a time.
  """
  total = rows.length_B.shape[0]
  group = total // begun[0][0].shape[0]
  decoder = _Decoder(weights, cfg, sampling, begun, group)
  s = decoder.start(rows, min(slots, total), max_tokens)
  widths = [min(slots, total)]
  if sampling.eos_ids:  # without any, rows last until their limit together
    widths = batch_widths(widths[0], new_tokens, cfg.num_layers)
  for width, narrower in zip(widths, (*widths[1:], 0), strict=True):
    if width < widths[0]:
      s = s.narrowed(width)
    if width < widths[0] or width == total:
      s = decoder.until(s, narrower)
    else:
      s = decoder.until_none_waits(s, narrower)
  return s.rows


@dataclasses.dataclass(frozen=True)
class _Decoder:
  """The steps of decode; its arguments, and rows a group."""

  weights: Sequence[Any]
  cfg: models.ModelConfig
  sampling: SamplingConfig
  begun: Sequence[tuple[Array, models.PromptCache]]
  group: int

  def start(self, rows: Rows, slots: int, max_tokens: int) -> Slots:
    """The first rows have their first tokens."""
    row_W = jnp.arange(slots, dtype=jnp.int32)
    prompts = [prompt for _, prompt in self.begun]
    if not shares_prompts(rows.length_B.shape[0], slots):
      prompts = [p.take(row_W // self.group) for p in prompts]
    return Slots(
      rows=self.first_tokens(rows, row_W, jnp.ones(slots, bool)),
      row_W=row_W,
      step_W=jnp.ones_like(row_W),
      caches=tuple(
        models.extend(self.cfg, p, slots, max_tokens) for p in prompts
      ),
      clock=jnp.int32(0),
      begun=jnp.int32(slots),
    )

  def until(self, s: Slots, width: Array | int) -> Slots:
    """Steps until at most so many slots are going."""
    return lax.while_loop(lambda s: s.going().sum() > width, self.advance, s)

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
    token_W = s.rows.response_BT.at[s.row_W, s.step_W - 1].get(mode='clip')
    step = functools.partial(
      models.decode_step,
      cfg=self.cfg,
      token_B=token_W,
      step_B=s.step_W - 1,
      clock=s.clock,
      places=s.places(),
    )
    fed = [
      step(w, cache=cache)
      for w, cache in zip(self.weights, s.caches, strict=True)
    ]
    hidden, caches = zip(*fed, strict=True)
    return s.replace(
      rows=self.draw(s.rows, s.row_W, s.step_W, hidden, s.going()),
      step_W=s.step_W + 1,
      caches=caches,
      clock=s.clock + 1,
    )

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
      prompts = [prompt.take(row_R // self.group) for _, prompt in self.begun]
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
    hidden = [hidden_ND[row_W // self.group] for hidden_ND, _ in self.begun]
    return self.draw(rows, row_W, jnp.zeros_like(row_W), hidden, new_W)

  def draw(self, rows, row_W, step_W, hidden, new_W) -> Rows:
    """Writes token `step` of those rows in new_W that are still going."""
    logits = [
      models.logits(w, self.cfg, hidden_WD)
      for w, hidden_WD in zip(self.weights, hidden, strict=True)
    ]
    token_W, logp_W = sample_token(
      self.sampling.transform(*logits),
      randomness.token_uniform(rows.key_B[row_W], step_W),
      self.sampling.greedy,
    )
    new_W &= (step_W >= rows.given_B[row_W]) & (step_W < rows.limit_B[row_W])
    new_W &= ~rows.finished_B[row_W]
    ended_W = jnp.zeros_like(new_W)
    for eos in self.sampling.eos_ids:
      ended_W |= token_W == eos
    # Where nothing is to be written: past the last row.
    to_W = jnp.where(new_W, row_W, rows.length_B.shape[0])

    def write(x_BT, value_W):
      return x_BT.at[to_W, step_W].set(value_W, mode='drop')

    return rows.replace(
      response_BT=write(rows.response_BT, token_W),
      kind_BT=write(rows.kind_BT, jnp.full_like(token_W, POLICY)),
      logp_BT=write(rows.logp_BT, logp_W),
      length_B=rows.length_B.at[to_W].set(step_W + 1, mode='drop'),
      finished_B=rows.finished_B.at[to_W].set(ended_W, mode='drop'),
    )
