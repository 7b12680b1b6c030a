"""The compiled programs of slots on a mesh, and the rows that they work on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

from absl import logging
import jax
import numpy as np

from rl_jax.decoding import slot_decode
from rl_jax.decoding.cache_places import Copy, HostCache, Move, Places
from rl_jax.decoding.decode import most_widths
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slot_decode import BURST, LONGEST, Table
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import transformer
from rl_jax.runtime import compilation, layout, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.types import Trajectories

# Known tokens of a row that are fed at once, at most, and the rows of a call.
# Answers come a few at a time, and 256 tokens cost as much as all that a device
# can do while it reads the weights once.
FEED, FEED_ROWS = 32, 8
FEED_MOST = 32  # rows of a wide call, where it has the bits of a narrow one
MOST_WIDTHS = 2  # each is a program
FEWEST = 8  # slots of the narrowest


class Widths(NamedTuple):
  """The slots of calls that are tried; all numbers are of a shard.

  most: numbers of slots that bursts may have. apart: each is so many times the
  next. fed: rows that the widest call of `feed` has.
  """

  most: int
  apart: int
  fed: int

  @classmethod
  def of(cls, model: transformer.ModelConfig) -> 'Widths':
    """Those that are worth a program.

    On CPU the time of a step is that of its rows, and steady sums have the same
    bits at each width. On accelerators nothing is known of either.
    """
    most = min(MOST_WIDTHS, most_widths(model))
    if not model.platform.is_cpu or most == 1:
      return cls(most, 4, FEED_ROWS)
    return cls(most, 2, FEED_MOST)

  def slots(self, rows: int, slots: int | None, shards: int) -> tuple[int, ...]:
    """The numbers of slots, the most first; slots: on all shards."""
    first = rows if slots is None else min(rows, max(1, slots // shards))
    found = [first]
    while len(found) < self.most and found[-1] >= self.apart * FEWEST:
      found.append(found[-1] // self.apart)
    return tuple(found)

  def feeds(self, slots: int) -> tuple[int, ...]:
    """The rows of calls of `feed`, the most first; slots: of the widest."""
    narrow, wide = (min(rows, slots) for rows in (FEED_ROWS, self.fed))
    return (wide, narrow) if wide > narrow else (narrow,)


@dataclasses.dataclass
class SlotPrograms:
  """The jitted functions of slot_decode; built by make_programs.

  begin: (params, traj=, key=, acting_B=) -> weights, table, drawn. feed:
  (weights, table, said_VX) -> table. sample: (weights, table, chosen_V3) ->
  table, drawn. kept: (table, place_S) -> keys. returned: (table, place_S,
  keys) -> table. Tables are donated, but by `kept`. whole: arrays of which each
  device then has all. slots: of a call at most, on all devices; None: all rows.
  cache_tokens: of rows on all devices, for which caches have places; None: all.
  limits: what `settle` compares. widths, feeds: slots of `sample` and of `feed`
  that are in use on each shard, the most first; () until `settle`. exact:
  whether a row has the same bits among all neighbours; then tokens do not
  depend on time (tier E0).
  """

  begin: Callable[..., tuple[Any, Table, jax.Array]]
  feed: Callable[..., Table]
  sample: Callable[..., tuple[Table, jax.Array]]
  kept: Callable[[Table, jax.Array], Any]
  returned: Callable[[Table, jax.Array, Any], Table]
  whole: Callable[[Any], Any]
  mesh: jax.sharding.Mesh
  slots: int | None
  cache_tokens: int | None
  limits: Widths
  widths: tuple[int, ...] = ()
  feeds: tuple[int, ...] = ()
  exact: bool = True

  def tried(self, traj: Trajectories) -> tuple[tuple[int, ...], ...]:
    """The slots of a shard that `settle` compares: (of sample, of feed).

    The most come first; each has its own program. traj: rows of the mesh in
    force, or shapes.
    """
    total = traj.length_B.shape[0]
    shards = layout.parts(traj.num_prompts, 'sampled_rows')
    slots, places = self.slots, self.places(traj)
    if places < total // shards:
      slots = min(slots or total, places * shards)
    widths = self.limits.slots(total // shards, slots, shards)
    return widths, self.limits.feeds(widths[0])

  def places(self, traj: Trajectories) -> int:
    """The rows of a shard whose keys and values have a place in its cache."""
    total, tokens = traj.response_BT.shape
    shards = layout.parts(traj.num_prompts, 'sampled_rows')
    return slot_decode.places_of_shard(
      total // shards, tokens, self.cache_tokens, shards
    )

  def settle(
    self,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    most: int,
    acting_B: np.ndarray | None = None,
  ) -> None:
    """Finds out, once, which widths compute the same bits.

    The same rows are fed and sampled among others and by each width. Those that
    differ from the widest call of `sample` or the narrowest of `feed` are not
    used. It takes seconds besides the compilation.
    """
    if self.widths:
      return
    total = traj.length_B.shape[0]
    shards = layout.parts(traj.num_prompts, 'sampled_rows')
    tried = widths, feeds = self.tried(traj)

    def probe(width, rows, fed=feeds[-1]):
      self.widths, self.feeds = (width,), (fed,)
      slots = RunningSlots(self, params, traj, key, most, acting_B)
      return slots.probed(rows, traj)

    every = range(total)
    known = probe(widths[0], every)
    self.exact = _agree(known, probe(widths[0], every[::2]), every[::2])
    kept = [widths[0]]
    for width in widths[1:]:
      rows = every[:: total // (width * shards)]
      if _agree(known, probe(width, rows), rows):
        kept.append(width)
    wide = [
      fed
      for fed in feeds[:-1]
      if _agree(known, probe(widths[0], every, fed), every)
    ]
    self.widths, self.feeds = tuple(kept), (*wide, feeds[-1])
    how = 'depends on its neighbours in the last bits (tier E2)'
    if self.exact:
      how = 'has the same bits among all others: time changes none (tier E0)'
    logging.info(
      'slots of a device to sample and to feed: %s of %s are used; a row %s',
      (self.widths, self.feeds),
      tried,
      how,
    )


class Result(NamedTuple):
  """The new tokens of a row; its turn ended by itself, or at all."""

  ids: list[int]
  finished: bool
  ended: bool


class Burst(NamedTuple):
  """A call that may still run: its rows by slot, and what they will draw.

  Of several processes each has its own rows here.
  """

  rows: list[int | None]
  drawn_VX: Any  # an array on the device

  @property
  def ended(self) -> bool:
    """Returns whether `read` would wait for nothing."""
    return self.drawn_VX.is_ready()

  def read(self) -> dict[int, Result]:
    """Waits for the call; the results by row."""
    host = slot_decode.read(processes.read(self.drawn_VX))
    results = zip(
      self.rows,
      host.token_VS.tolist(),
      host.count_V.tolist(),
      host.finished_V.tolist(),
      host.going_V.tolist(),
      strict=True,
    )
    return {
      row: Result(tokens[:count], finished, not going)
      for row, tokens, count, finished, going in results
      if row is not None
    }


class RunningSlots:
  """Rows of trajectories while they are sampled, in calls of the programs.

  Calls run on the device in the order in which they are started here, and
  nothing but `Burst.read` waits for one. most: tokens of an observation.
  Several processes start the same calls, each for rows of its own devices or,
  if rows are on devices of several (`spread`), all for the same rows.
  acting: rows that have a first token, which are those of `first`; None: all.
  host: where rows wait that have no place in the cache, of which
  `places` says which rows have one.
  """

  def __init__(
    self,
    programs: SlotPrograms,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    most: int,
    acting_B: np.ndarray | None = None,
    host: HostCache | None = None,
  ):
    self._programs, self._most = programs, most
    self._everywhere = mesh_lib.replicated(programs.mesh)
    acting = {}
    if acting_B is not None:
      acting['acting_B'] = processes.put(acting_B, self._everywhere)
    self._weights, self.table, drawn_VX = programs.begin(
      params, traj=traj, key=key, **acting
    )
    self._total = traj.length_B.shape[0]
    self._shards = layout.parts(traj.num_prompts, 'sampled_rows')
    self._by_rows = mesh_lib.sampled_rows(programs.mesh, traj.num_prompts)
    self.spread = not processes.has_own(self._by_rows, traj.num_prompts)
    own = processes.own(traj.num_prompts)
    rows = range(own.start * traj.group_size, own.stop * traj.group_size)
    every = range(self._total)
    self.places = Places(
      self._shards,
      self._total // self._shards,
      programs.places(traj),
      traj.response_BT.shape[1],
      HostCache() if host is None else host,
    )
    self._coming: list[Copy] = []  # that may be on their way to the host
    acts_B = np.ones(self._total, bool) if acting_B is None else acting_B
    self.first = Burst(
      [x if x in rows and acts_B[x] else None for x in every], drawn_VX
    )

  @property
  def widest(self) -> int:
    """The rows of a burst at most, of all devices."""
    return self._programs.widths[0] * self._shards

  @property
  def fed(self) -> int:
    """The rows of a call of `feed` at most, of all devices."""
    return self._programs.feeds[0] * self._shards

  def calls(self, rows_B: np.ndarray) -> int:
    """Returns how many narrow calls of `feed` these rows need, bool[B]."""
    return -(-self._most_of_a_shard(rows_B) // self._programs.feeds[-1])

  @property
  def idle(self) -> bool:
    """Returns whether all calls have ended."""
    newest: Any = self.table.step_B
    return newest.is_ready()

  def house(self, rows: Sequence[int]) -> list[int]:
    """Gives rows places in the cache, as far as there are; those that have one.

    Rows that wait make room for them, see cache_places.
    """
    for copy in self._coming:
      copy.land()
    self._coming = []
    for move in self.places.give(rows):
      if move.left is not None:
        self._park(move.left, move.place)
      if move.row in self.places.parked:
        self._return(move)
    return [row for row in rows if row in self.places]

  def _park(self, row: int, place: int) -> None:
    """Copies what a row has in its place to the host, beside the next calls."""
    shard = self._shard_of(row)
    place_S = np.zeros(self._shards, np.int32)
    place_S[shard] = place
    place_S = processes.put(place_S, self._by_rows)
    copy = Copy(self._programs.kept(self.table, place_S), shard)
    self.places.parked[row] = copy
    self._coming.append(copy)

  def _return(self, move: Move) -> None:
    """Puts what a row has on the host into its place."""
    place_S = np.full(self._shards, self._total, np.int32)  # past the last one
    place_S[self._shard_of(move.row)] = move.place
    self.table = self._programs.returned(
      self.table,
      processes.put(place_S, self._by_rows),
      self.places.parked.pop(move.row).on_devices(),
    )

  def _shard_of(self, row):
    return row // (self._total // self._shards)

  def feed(
    self,
    said: Mapping[int, tuple[Sequence[int], *tuple[bool, ...]]],
    calls: int | None = None,
  ) -> list[int]:
    """Puts observations after rows: (ids, whether it forgets, and inside a
    turn), see slot_decode.Observed.

    calls: that are started, whether rows need them or not, all narrow; None: as
    many as these rows need. Returns the rows that found no place in them.
    """
    left, count = list(said), 0
    widths = (
      self._programs.feeds if calls is None else self._programs.feeds[-1:]
    )
    while left if calls is None else count < calls:
      count += 1
      rows, row_V, place_V, live_V = self._placed(left, widths)
      said_VX = slot_decode.for_feed(row_V, place_V, live_V, self._most)
      for slot, row in enumerate(rows):
        if row is not None:
          slot_decode.say(said_VX, slot, *said[row])
      said_VX = processes.put(said_VX, self._by_rows)
      self.table = self._programs.feed(self._weights, self.table, said_VX)
      fed = set(rows)
      left = [row for row in left if row not in fed]
    return left

  def sample(
    self,
    rows: Sequence[int],
    steps: int = BURST,
    among_B: np.ndarray | None = None,
  ) -> Burst:
    """Starts a burst of the first rows that have slots; steps: at most.

    among: bool[B], with all rows of any process that may be in the burst, so
    that all use one program; None: no others may.
    """
    need = 0 if among_B is None else self._most_of_a_shard(among_B)
    slots, row_V, place_V, live_V = self._placed(
      rows, self._programs.widths, need
    )
    chosen_V3 = slot_decode.for_sample(row_V, place_V, live_V, steps)
    chosen_V3 = processes.put(chosen_V3, self._by_rows)
    self.table, drawn_VX = self._programs.sample(
      self._weights, self.table, chosen_V3
    )
    return Burst(slots, drawn_VX)

  def exchanged(self, state_B: np.ndarray) -> jax.Array:
    """Numbers of all rows; each process gives those of its rows.

    All processes call it together, and only reading it waits.
    """
    return self._programs.whole(processes.put(state_B, self._by_rows))

  def _most_of_a_shard(self, rows_B):
    return int(rows_B.reshape(self._shards, -1).sum(axis=1).max())

  def _placed(
    self, rows: Sequence[int], widths: Sequence[int], need: int = 0
  ) -> tuple[list[int | None], np.ndarray, np.ndarray, np.ndarray]:
    """(the row in each slot of all shards or None, row_V, place_V, live_V).

    row_V: of a shard its own numbers; other rows fill the slots that are free,
    of those that have, or had last, a place in the cache.
    need: slots of a shard that there are at least, as far as a width has them.
    """
    share = self._total // self._shards
    by_shard: list[list[int]] = [[] for _ in range(self._shards)]
    for row in rows:
      by_shard[row // share].append(row)
    need = max(need, *map(len, by_shard))
    width = min((w for w in widths if w >= need), default=widths[0])
    slots: list[int | None] = []
    filled: list[int] = []
    held: list[int] = []  # by those: the place of each
    for shard, own in enumerate(by_shard):
      first = shard * share
      taken = set(own[:width])
      every = self.places.rows[shard]
      if width == share:  # each row has its slot
        slots += [row if row in taken else None for row in every]
        chosen = every
      else:
        slots += [*own[:width], *[None] * (width - len(taken))]
        others = (row for row in every if row not in taken)
        free = itertools.islice(others, width - len(taken))
        chosen = (*own[:width], *free)
      filled += [row - first for row in chosen]
      held += [self.places.seats[row] for row in chosen]
    live_V: Any = np.array([row is not None for row in slots])
    return slots, np.array(filled, np.int32), np.array(held, np.int32), live_V

  def probed(
    self, rows: Iterable[int], traj: Trajectories
  ) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, log-probs) of all rows after observations and bursts of some.

    Observations are random tokens of the prompts, the same ones for each row.
    """
    rng = np.random.default_rng(0)
    known = np.unique(self._read(traj.prompt_NP))
    room = traj.response_BT.shape[1] - 2
    said = {}
    for row in range(self._total):
      count = min(rng.integers(1, self._most + 1), max(room, 0))
      said[row] = (rng.choice(known, count).tolist(), False)
    left = list(rows)
    while left:
      own = self.house(left[: self.widest])
      self.feed({row: said[row] for row in own})
      self.sample(own)
      left = [row for row in left if row not in own]
      for row in own:
        self.places.ends(row)
    done = self.table.rows
    response_BT, logp_BT = self._read((done.response_BT, done.logp_BT))
    return response_BT, logp_BT

  def _read(self, arrays):
    """Reads rows of all processes."""
    if processes.count() > 1:
      arrays = self._programs.whole(arrays)
    return processes.read(arrays)


def make_programs(
  model: transformer.ModelConfig,
  sampling: SamplingConfig,
  turns: TurnConfig,
  mesh: jax.sharding.Mesh,
  slots: int | None,
  cache_tokens: int | None = None,
) -> SlotPrograms:
  """Jits all; shapes compile on first use."""
  replicated = mesh_lib.replicated(mesh)
  # As of whole turns (engine): one layout, or the compiler's for split heads.
  split = mesh.shape['tensor'] > 1 or mesh.shape['sequence'] > 1
  rows = None if split else mesh_lib.rows(mesh)
  options = compilation.options(Platform.of_mesh(mesh))
  called, limits = _steady(model), {'turn_tokens': turns.max_turn_tokens}
  chunk = min(FEED, turns.max_observation_tokens)
  donating = (slot_decode.feed, slot_decode.sample, slot_decode.returned)

  def jitted(function: Callable, out: Any, **fixed: Any) -> Callable:
    return jax.jit(
      functools.partial(function, **fixed),
      donate_argnames='table' if function in donating else (),
      out_shardings=out,
      compiler_options=options,
    )

  return SlotPrograms(
    begin=jitted(
      slot_decode.begin,
      (None, rows, replicated),
      cfg=model,
      sampling=sampling,
      cache_tokens=cache_tokens,
      **limits,
    ),
    feed=jitted(slot_decode.feed, rows, cfg=called, chunk=chunk, **limits),
    sample=jitted(
      slot_decode.sample,
      (rows, replicated),
      cfg=called,
      sampling=sampling,
      longest=min(LONGEST, turns.max_turn_tokens),
    ),
    kept=jitted(slot_decode.kept, rows, cfg=model),
    returned=jitted(slot_decode.returned, rows),
    whole=jax.jit(_same, out_shardings=replicated),
    mesh=mesh,
    slots=slots,
    cache_tokens=cache_tokens,
    limits=Widths.of(model),
  )


def _steady(model: transformer.ModelConfig) -> transformer.ModelConfig:
  """The model for calls that narrow: on CPU their bits agree by steady sums.

  On accelerators products with ones may round, and nothing is known of sums.
  """
  platform = dataclasses.replace(
    model.platform, steady_sums=model.platform.is_cpu
  )
  return dataclasses.replace(model, platform=platform)


def _same(arrays):
  return arrays


def _agree(known, found, rows) -> bool:
  """Returns whether the rows have the same bits in both."""
  own = np.array(rows)
  return all(
    np.array_equal(x[own], y[own]) for x, y in zip(known, found, strict=True)
  )
