"""Bytes of activations, logits, caches and scratch, from shapes only."""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp

from rl_jax.decoding import decode, slot_decode, slot_engine
from rl_jax.decoding.drafts.settings import Drafts
from rl_jax.decoding.slots import shares_prompts
from rl_jax.episodes import turns
from rl_jax.learning import statistics
from rl_jax.method import Method
from rl_jax.models import attention as attention_lib
from rl_jax.models import (
  attention_blocks,
  block_pool,
  critic,
  decode_attention,
  decoding,
  experts,
  kv_cache,
  transformer,
)
from rl_jax.pieces.logits.transforms import policy_names
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib

# Arrays of a kind that are alive together where memory peaks.
SCORE_COPIES = 3  # scores, weights and their cotangent
ROW_COPIES = 4  # with and without turning, and the cotangents of both
MLP_COPIES = 5  # gate, up, silu(gate) * up, and the cotangents of two
ROUTED_COPIES = 4  # states sorted by expert, before and after; cotangents
STATE_COPIES = 3  # states of the residual stream, normed, cotangents
HIDDEN_COPIES = 3  # states, those without padding, their cotangent
SAMPLING_COPIES = 3  # logits, and twice those at the temperature; on CPU
SAMPLING_COPIES_ON_TPU = 2  # logits in two layouts
ROW_COPIES_ON_TPU = 2  # queries and results of attention, in rows of 128
STATE_COPIES_ON_TPU = 6
PREFILL_COPIES, PREFILL_COPIES_ON_TPU = 2, 3  # hidden units of prompts
# Bytes of a program over those that are alive at its peak: XLA for TPU packs
# buffers with gaps, of 1% to 19% in the programs that were read.
GAPS_ON_TPU = 1.04


def tables_of_episodes(config: Any) -> int:
  """Tables of episodes that are open at a time, each of N groups.

  By arrival twice as many groups start first. With a filter groups start that
  do not fill a table, or in a further round; one that drops more than half of
  them may need more.
  """
  if not turns.crosses_updates(config):
    return 1
  rollout = config.rollout
  arrives = rollout.order != turns.FIXED
  filtered = config.method.group_filter is not None
  return (1 + rollout.staleness) * (1 + filtered) + arrives


def _hidden_units(model: transformer.ModelConfig, split: Any) -> int:
  """Hidden units of a token on a device. Chosen experts count in full, as all
  experts of a token may be on one device.
  """
  if not model.num_experts:
    return split(model.mlp_size)
  if model.expert_products == experts.CHOSEN:
    return model.experts_per_token * model.mlp_size
  return split(model.num_experts) * model.mlp_size


@dataclasses.dataclass(frozen=True)
class Sizes:
  """Dimensions on one device, and the bytes of what the programs hold."""

  model: transformer.ModelConfig
  microbatch: int  # groups of one forward pass
  rollout: int  # groups of one part of a rollout; 0: all rows are data
  group_size: int
  group_rows: int  # of a group in one forward pass
  prompt: int  # P
  response: int  # T
  heads: int  # of queries
  kv_heads: int
  mlp: int  # hidden units of a token, of all experts that compute it
  experts: int  # whose weights a device has; 0 if there is one MLP
  fsdp: int  # devices that share weights, which are whole where they are used
  vocab: int
  itemsize: int  # of the compute dtype
  slots: int | None  # rows that are decoded at a time
  cache_tokens: int | None  # of their responses; None: whole ones
  spans: int  # of a response, on different devices in an update
  episodes: bool  # rows have several turns
  drafts: Drafts | None  # of speculative decoding
  policies: int  # that a rollout samples from or reads, each with a cache
  widened: int  # rows of a group in an update, for each that is sampled first
  continued: int  # rows of the largest call that samples, likewise
  beams: bool = False  # rows are kept sequences of beam search
  # Batches of episodes that are played at a time, each with weights and caches.
  played: int = 1
  on_host: bool = False  # rows of these may wait in the memory of the host

  @classmethod
  def of(cls, config, model, mesh) -> 'Sizes':
    rollout, axes = config.rollout, dict(mesh.shape)
    minibatch = config.update.minibatch_prompts or rollout.num_prompts
    shards = math.prod(axes[axis] for axis in mesh_lib.ROW_AXES)
    prompts = max(0, rollout.generated_prompts - rollout.recorded_prompts)
    prompts //= rollout.parts
    samplers = layout.parts(prompts, 'sampled_rows', axes)

    def split(n):
      return n if n % axes['tensor'] else n // axes['tensor']

    def share(n):
      return n and -(-n // samplers)

    wrapper = config.method.wrapper
    update = config.update
    microbatch = -(-(update.microbatch_prompts or minibatch) // shards)
    group_rows = update.microbatch_rows or rollout.group_size
    if rows := update.minibatch_rows:  # scoring has whole groups
      rows = -(-(update.microbatch_rows or rows) // shards)
      microbatch = max(rows, microbatch * rollout.group_size)
      group_rows = 1
    return cls(
      model=model,
      microbatch=microbatch,
      rollout=-(-prompts // samplers),
      group_size=rollout.group_size,
      group_rows=group_rows,
      prompt=rollout.max_prompt_tokens,
      response=rollout.max_response_tokens,
      heads=split(model.num_heads),
      kv_heads=split(model.num_kv_heads),
      mlp=_hidden_units(model, split),
      experts=split(model.num_experts),
      fsdp=axes['fsdp'],
      vocab=split(model.vocab_size),
      itemsize=jnp.dtype(model.compute_dtype).itemsize,
      slots=share(rollout.slots),
      cache_tokens=share(rollout.cache_tokens),
      spans=mesh_lib.spans(mesh),
      episodes=rollout.turns is not None,
      drafts=rollout.speculative,
      policies=sampling_policies(config.method),
      widened=wrapper.widens,
      continued=wrapper.continues,
      played=tables_of_episodes(config),
      on_host=rollout.host_cache_tokens is not None,
    )

  def activations(self) -> int:
    """Returns what layers save for the backward pass, and their last states."""
    m, (rows, tokens, _) = self.model, self._fed
    own = self.response // self.spans
    # Every layer's input and, without remat, its products with weights and the
    # results of attention that are not computed at once.
    saved = m.width * tokens
    if not m.remat:
      saved += (self._products + self._gated) * tokens
      saved += self._row * self.heads * self._fused
    saved *= self.itemsize
    saved *= m.num_layers * (1 + critic.has_own(m))
    return saved + HIDDEN_COPIES * rows * own * m.width * self.itemsize

  def layer(self) -> int:
    """The largest part of one layer in the backward pass.

    XLA for TPU holds both parts at once.
    """
    m, (rows, tokens, S) = self.model, self._fed
    again = self._products * tokens if m.remat else 0
    attention = ROW_COPIES * self._row * self._fused
    attention *= self.heads + 2 * self.kv_heads
    if self.spans > 1:  # keys and values of all devices, and their cotangents
      whole = 2 * 2 * rows * self.response * self.kv_heads
      attention += whole * m.head_size
    attention *= self.itemsize
    if self._on_tpu and self._fused:
      attention = ROW_COPIES_ON_TPU * self._queries_on_tpu()
    if m.attention == 'plain':
      attention += SCORE_COPIES * self.heads * 4 * self._scores(rows, S)
    mlp = self._mlp_numbers(ROUTED_COPIES)
    if self._on_tpu:
      mlp += STATE_COPIES_ON_TPU * m.width
      held = attention + mlp * tokens * self.itemsize
    else:
      mlp += STATE_COPIES * m.width
      held = max(attention, mlp * tokens * self.itemsize)
    return again * self.itemsize + held + self._layer_weights()

  def _queries_on_tpu(self) -> int:
    """Queries of a layer in rows, whose numbers lie in rows of 128."""
    return self.heads * self._padded(self._row) * self.itemsize

  def _padded(self, numbers: int) -> int:
    """Numbers of heads, in rows of 128."""
    size = self.model.head_size
    return numbers // size * (-(-size // kv_cache.LANES) * kv_cache.LANES)

  @property
  def _fed(self) -> tuple[int, int, int]:
    """(rows, tokens, tokens of a response) of a forward pass."""
    own = self.response // self.spans
    # The last token is not fed; if responses are split, every place is.
    S = own if self.spans > 1 else own - 1
    rows = self.microbatch * self.group_rows * self.widened
    return rows, self.microbatch * self.prompt + rows * S, S

  @property
  def _products(self) -> int:
    """Numbers of a token in the products of a layer, without the MLP's."""
    m = self.model
    return (self.heads + 2 * self.kv_heads) * m.head_size + 2 * m.width

  @property
  def _gated(self) -> int:
    """Numbers of a token in gate and up; experts compute theirs again."""
    return 0 if self._routed else 2 * self.mlp

  @property
  def _row(self) -> int:
    """Numbers of one head in rows of prompt and response."""
    rows, _, S = self._fed
    return rows * (S + self.prompt) * self.model.head_size

  @property
  def _fused(self) -> bool:
    """Returns whether attention is a kernel or by blocks, which keep their
    results.
    """
    _, _, S = self._fed
    keys = self.prompt + self.response - 1
    plain = self.model.attention == 'plain'
    return not plain or not attention_lib.is_whole(S, keys)

  def _layer_weights(self) -> int:
    """One layer in the compute dtype and, but on TPU, its gradient."""
    if not self.copied:
      return 0
    copies = 1 if self._on_tpu else 2
    return copies * self._layer_numbers * self.itemsize

  @property
  def gathered(self) -> bool:
    """Returns whether devices share weights."""
    return self.fsdp > 1

  @property
  def copied(self) -> bool:
    """Returns whether products read copies of the weights."""
    m = self.model
    return m.compute_dtype != m.param_dtype or self.gathered

  @property
  def _layer_numbers(self) -> int:
    """Weights of one layer, in a model with experts of all of the device."""
    m = self.model
    attention = m.width * m.head_size * 2 * (self.heads + self.kv_heads)
    mlp = 3 * m.width * self.mlp
    if self._routed:
      mlp = 3 * m.width * m.mlp_size * self.experts
    return attention + mlp

  def _scores(self, rows: int, S: int) -> int:
    """Scores of plain attention that a layer holds of one head."""
    own, prompts = self.response - 1, self.microbatch * self.prompt**2
    size = attention_blocks.block_size
    if self.prompt > attention_lib.WHOLE_QUERIES:
      prompts = self.microbatch * size(self.prompt) ** 2
    if attention_lib.is_whole(S, self.prompt + own):
      return rows * S * (own + self.prompt) + prompts
    return max(prompts, rows * size(S) * max(size(own), size(self.prompt)))

  @property
  def _routed(self) -> int:
    """Numbers of a token's states, once for each of its experts."""
    chosen = self.model.expert_products == experts.CHOSEN
    return self.model.experts_per_token * self.model.width if chosen else 0

  def _mlp_numbers(self, routed: int) -> int:
    """Numbers of a token in the MLP or the experts of one layer."""
    return MLP_COPIES * self.mlp + routed * self._routed

  def logits(self) -> int:
    """One chunk of scoring, and the matrix of the last layer."""
    step = self.microbatch * self.group_rows * self.widened * self.vocab
    own = self.response // self.spans
    most = statistics.chunk_elements(self.model.platform)
    span = max(1, min(own, most // step))
    span = -(-own // -(-own // span))  # chunks of equal sizes
    table = self.table()
    if self._on_tpu:  # cotangents in place, tiles of 8 tokens; table turned
      span = -(-span // 8) * 8
      return span * step * (4 + self.itemsize) + (1 + self.gathered) * table
    # In float32 logits and their cotangents, and these in the compute dtype.
    return span * step * (2 * 4 + self.itemsize) + table

  def cache(self) -> int:
    """Keys and values of every prompt once, and of every slot.

    While the batch narrows the rows that continue have theirs again, see
    _at_once; while the cache grows all rows have their first places.
    Few slots of many rows have their prompts to themselves. Kept beams are
    copied.
    """
    if not self.rollout:
      return 0
    if self.episodes:
      return self._cache_of_slots()
    m, rows, token = self.model, self._sampled_rows, self._token
    if self.cache_tokens and self.drafts is None:
      return self._pool() * token
    places, widths = self.rollout * self.prompt, self._widths()
    small = 0
    if (
      not self.beams
      and self.drafts is None
      and decode.starts_small(m)
      and decode.wide_widths(widths, rows, self.response)
    ):
      small = rows * kv_cache.first_places(self.response)
    places += self._places(widths[0])
    fewer = sum(map(self._places, widths[1:2]))
    if m.platform.is_gpu:
      return (places + self._at_once(max(small, fewer))) * token
    return (places + small + self._at_once(fewer)) * token

  def _at_once(self, places: int) -> int:
    """Returns how many of these places are there beside all former ones.

    On GPU a cache grows, and fewer rows are taken, array by array; each has the
    keys or values of one layer, or of all. XLA for TPU takes the values of
    fewer rows when the former keys are gone.
    """
    m = self.model
    if m.platform.is_cpu:
      return places
    arrays = 2 * (1 if decoding.scans_layers(m) else m.num_layers)
    return -(-places // arrays)

  def _cache_of_slots(self) -> int:
    """Keys and values of all rows that are played, and of prompts once a table.

    Fewer rows have places if cache_tokens says so; one row at a time moves to
    the host or returns. A call has those that it works on once more, unless
    these are all rows of its table. One call runs at a time.
    """
    rows, kept = self._sampled_rows, self._kept_rows()
    one = self._places(rows) // rows
    table = self.rollout * self.prompt + kept * one
    places = self.played * table + self._places(self._copied_rows())
    places += 2 * one * (self.on_host and kept < rows)
    return places * self._token // self.played

  def _kept_rows(self) -> int:
    """The rows of a table that have places in its cache."""
    rows = self._sampled_rows
    return slot_decode.places_of_shard(
      rows, self.response, self.cache_tokens, 1
    )

  def _copied_rows(self) -> int:
    """The most rows of a call that are not all rows of its table."""
    rows, kept = self._sampled_rows, self._kept_rows()
    slots = self.slots if kept == rows else min(self.slots or rows, kept)
    limits = slot_engine.Widths.of(self.model)
    widths = limits.slots(rows, slots, 1)
    called = (*widths, *limits.feeds(widths[0]))
    return max((width for width in called if width < rows), default=0)

  def _turned_cache(self) -> int:
    """Bytes of the cache of a call of episodes, in the layout of its kernels.

    Between calls tokens lie along the lanes, which pads no heads. Where heads
    fill the lanes only the keys are in another layout.
    """
    if not self.episodes:
      return 0
    rows, size = self._sampled_rows, self.model.head_size
    rows = min(self.slots or rows, self._kept_rows())
    places = self.rollout * self.prompt + self._places(rows)
    turned = self._padded(size) / size if size % kv_cache.LANES else 1 / 2
    return int(places * self._token * turned) // self.played

  def _cache_of_fewer(self) -> int:
    """Bytes of the cache that fewer rows have besides, in their calls."""
    if self.episodes:
      return self._places(self._copied_rows()) * self._token // self.played
    if self.beams or self.cache_tokens:
      return 0
    fewer = sum(map(self._places, self._widths()[1:2]))
    return self._at_once(fewer) * self._token

  @property
  def _token(self) -> int:
    """Bytes of the keys and values of a token, of all that sample."""
    m = self.model
    # Heads lie along the lanes where kernels attend in a program; elsewhere it
    # is tokens, between the programs of episodes, or rows.
    padded = self._on_tpu and not self.episodes and self.drafts is None
    padded &= decode_attention.runs(m)
    head_size = self._padded(m.head_size) if padded else m.head_size
    token = 2 * m.num_layers * self.kv_heads * head_size * self.itemsize
    return token * self.policies * self.played

  def _widths(self) -> list[int]:
    """The numbers of rows that are decoded at a time, the most first."""
    rows, most = self._sampled_rows, decode.most_widths(self.model)
    if self.beams:
      return [rows, rows]
    slots = min(self.slots or rows, rows)
    return decode.batch_widths(slots, self.response, most)

  def _places(self, width: int) -> int:
    """Places of so many rows, with those of prompts that they do not share."""
    platform, blocks = self.model.platform, kv_cache.blocks_of
    if self.episodes:
      blocks = kv_cache.turn_blocks
    own = math.prod(blocks(self.response, platform))
    shared = shares_prompts(self._sampled_rows, width)
    return width * (own if shared else own + self.prompt)

  @property
  def _sampled_rows(self) -> int:
    """Rows of one sampling call on a device, with and without a slot."""
    return self.rollout * self.group_size * self.continued

  def _pool(self) -> int:
    """Places of prompts, of shared blocks, and of those that few rows keep."""
    rows = self._sampled_rows
    slots = min(self.slots or rows, rows)
    held = self.cache_tokens or 0
    size, whole, blocks = block_pool.sizes(self.response, held)
    widths = decode.batch_widths(
      slots, self.response, decode.most_widths(self.model)
    )
    few = [width * whole for width in widths if width * whole < blocks]
    fewer = self._at_once(max(few, default=0) * size)
    places = self.rollout * self.prompt + blocks * size + fewer
    own = [width for width in widths[:2] if not shares_prompts(rows, width)]
    return places + sum(own) * self.prompt

  def scratch(self) -> int:
    """Returns what sampling holds beside its weights and the cache.

    That is the logits of a step or, where it is more, what lies there before
    the first step, less the cache. Between the programs of episodes there are
    weights and cache, which are results and lie beside all from the start; the
    cache of fewer rows is not there yet.
    """
    rows = min(self.slots or self._sampled_rows, self._sampled_rows)
    if self.drafts is not None:
      rows *= self.drafts.width(rows) + 1
    logits = self.policies * rows * self.model.vocab_size * 4
    if self.model.platform.is_cpu:
      return max(self._prefill(), SAMPLING_COPIES * logits)
    if self._on_tpu:
      return self._scratch_on_tpu(logits)
    if self.episodes:
      return max(logits, self._before_episodes() - self._cache_of_fewer())
    before = self.policies * self._passing_prompts()
    # The table of tokens is not gathered yet, and there is no cache.
    return max(logits, before - self.policies * self.table() - self.cache())

  def _before_episodes(self) -> int:
    """Returns what GPUs hold before the first step beside results.

    Those are the prompts; the result of XLA that becomes the table of tokens
    has one of their arrays of hidden units before, if it is large enough. Or it
    is that table while devices exchange their shares of it, twice.
    """
    hidden = self._hidden_of_prompts()
    passing, table = self._passing_prompts(), self.table()
    if hidden <= table:
      passing -= hidden
    exchanged = 2 * table // self.fsdp if self.gathered else 0
    return self.policies * max(passing, exchanged)

  def _scratch_on_tpu(self, logits: int) -> int:
    """Returns the same of programs for TPU, with the gaps between buffers.

    While all rows are decoded, the cache of fewer is not there yet. Before the
    first step there are the prompts, or the table of tokens as it is gathered
    and as it is read, beside what is left of the layers. Of episodes the cache
    is a result, which has other arrays before.
    """
    kept, cache = self.policies * self._sampled_weights(), self.cache()
    step = kept + cache + SAMPLING_COPIES_ON_TPU * logits
    step += self._turned_cache() - self._cache_of_fewer()
    matrix, table = self._mlp_matrices(), self.table()
    turned, passing = self.gathered * table, self._passing_prompts()
    if self.episodes:
      own = cache - self._cache_of_fewer()
      if self._hidden_of_prompts() <= own // 2:  # they lie where keys will be
        passing -= self._hidden_of_prompts()
      before = kept + own + self.policies * max(turned + matrix, passing)
    else:
      tables = turned + table + self._layers() - 2 * matrix
      before = self.policies * max(tables, passing + table + matrix)
    most = max(step, kept + cache, before) * GAPS_ON_TPU
    return int(most) - kept - cache

  @property
  def _on_tpu(self) -> bool:
    return self.model.platform.name == 'tpu'

  def _mlp_matrices(self) -> int:
    """One of the three matrices of the MLP, of all layers; none of experts."""
    if self._routed:
      return 0
    m = self.model
    return m.num_layers * m.width * self.mlp * self.itemsize

  def _prefill(self) -> int:
    """Returns what the prompts need beside the weights, on CPU."""
    prompts = self.rollout * self.prompt
    columns = self.prompt
    if columns > attention_lib.WHOLE_QUERIES:
      columns = attention_blocks.block_size(columns)
    scores = SCORE_COPIES * self.rollout * columns**2 * self.heads * 4
    return max(
      scores if self.model.attention == 'plain' else 0,
      prompts * self._mlp_numbers(ROUTED_COPIES // 2) * self.itemsize,
    )

  def _hidden_of_prompts(self) -> int:
    """Hidden units of prompts, one array of PREFILL_COPIES."""
    return self.rollout * self.prompt * self.mlp * self.itemsize

  def _passing_prompts(self) -> int:
    """Returns what prompts need on accelerators beside the weights."""
    m = self.model
    copies = PREFILL_COPIES_ON_TPU if self._on_tpu else PREFILL_COPIES
    numbers = 2 * m.width + copies * self.mlp + 2 * self._routed
    numbers += (self.heads + 2 * self.kv_heads) * m.head_size
    numbers += 2 * m.num_layers * self.kv_heads * m.head_size  # the cache
    return self.rollout * self.prompt * numbers * self.itemsize

  def cut_layers(self) -> int:
    """Weights of layers that sampling on GPU cuts out of the trainer's own."""
    m = self.model
    apart = m.platform.is_gpu and not decoding.scans_layers(m)
    return self._layers() if apart and not self.copied else 0

  def _layers(self) -> int:
    """Weights of all layers in the compute dtype."""
    return self.model.num_layers * self._layer_numbers * self.itemsize

  def _sampled_weights(self) -> int:
    """Weights of all layers, of the table and of the last matrix."""
    tables = 1 if self.model.tied_embeddings else 2
    return self._layers() + tables * self.table()

  def table(self) -> int:
    """Bytes of the embeddings in the compute dtype."""
    return self._table * self.itemsize

  @property
  def _table(self) -> int:
    """Numbers of the embeddings."""
    return self.vocab * self.model.width


def sampling_policies(method: Method) -> int:
  """The policy, and those that transforms of its samples or games read."""
  if method.wrapper.plays:
    return 2
  mixture = method.wrapper.opponent
  mixed = () if mixture is None else (mixture,)
  return 1 + len(policy_names((*method.logits, *mixed)))
