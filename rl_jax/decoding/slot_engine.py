"""The compiled programs of slots on a mesh, and the rows that they work on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import functools
from typing import Any, NamedTuple

from absl import logging
import jax
import numpy as np

from rl_jax.decoding import slot_decode
from rl_jax.decoding.decode import most_widths
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slot_decode import Chosen, Drawn, Observed, Table
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import transformer
from rl_jax.runtime import compilation, layout, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.types import Trajectories

# Known tokens that are fed at once: of a row, and the rows of a call, at most.
# Answers come a few at a time, and 256 tokens cost as much as all that a device
# can do while it reads the weights once. Narrower calls by need would have
# other bits.
FEED, FEED_ROWS = 32, 8
# Each is a program, and holds a quarter of the slots of the one before.
MOST_WIDTHS = 3
APART = 4
FEWEST = 4  # slots of the narrowest


@dataclasses.dataclass
class SlotPrograms:
  """The jitted functions of slot_decode; built by make_programs.

  begin: (params, traj=, key=) -> weights, table, drawn. feed: (weights, table,
  chosen, said) -> table. sample: (weights, table, chosen) -> table, drawn.
  Tables are donated. slots: of a call at most, on all devices; None: all rows.
  most_widths: numbers of slots that are tried. widths: those of `sample` in use
  on each shard, the most first; () until `settle`. exact: whether a row has the
  same bits among all neighbours; then tokens do not depend on time (tier E0).
  """

  begin: Callable[..., tuple[Any, Table, Drawn]]
  feed: Callable[..., Table]
  sample: Callable[..., tuple[Table, Drawn]]
  mesh: jax.sharding.Mesh
  slots: int | None
  most_widths: int
  widths: tuple[int, ...] = ()
  exact: bool = True

  def tried(self, traj: Trajectories) -> tuple[int, ...]:
    """The numbers of slots of a shard that `settle` compares, the most first.

    Each has its own program of `sample`. traj: rows of the mesh in force, or
    shapes.
    """
    total = traj.length_B.shape[0]
    shards = layout.parts(traj.num_prompts, 'sampled_rows')
    return _widths(total // shards, self.slots, shards, self.most_widths)

  def fed(self, traj: Trajectories) -> int:
    """The rows of a shard in each call of `feed`."""
    return min(FEED_ROWS, self.tried(traj)[0])

  def settle(
    self, params: Any, traj: Trajectories, key: jax.Array, most: int
  ) -> None:
    """Finds out, once, which widths compute the bits of the widest one.

    The same rows are fed and sampled among others and by each width. Widths
    that differ are not used. It takes seconds besides the compilation.
    """
    if self.widths:
      return
    total = traj.length_B.shape[0]
    shards = layout.parts(traj.num_prompts, 'sampled_rows')
    tried = self.tried(traj)

    def probe(width, rows):
      self.widths = (width,)
      slots = RunningSlots(self, params, traj, key, most)
      return slots.probed(rows, traj)

    every = range(total)
    known = probe(tried[0], every)
    self.exact = _agree(known, probe(tried[0], every[::2]), every[::2])
    kept = [tried[0]]
    for width in tried[1:]:
      rows = every[:: total // (width * shards)]
      if _agree(known, probe(width, rows), rows):
        kept.append(width)
    self.widths = tuple(kept)
    how = 'depends on its neighbours in the last bits (tier E2)'
    if self.exact:
      how = 'has the same bits among all others: time changes none (tier E0)'
    logging.info(
      'slots of a device: %s of %s are used; a row %s', self.widths, tried, how
    )


class Result(NamedTuple):
  """The new tokens of a row; its turn ended by itself, or at all."""

  ids: list[int]
  finished: bool
  ended: bool


class Burst(NamedTuple):
  """A call that may still run: its rows by slot, and what they will draw."""

  rows: list[int | None]
  drawn: Drawn

  def read(self) -> dict[int, Result]:
    """Waits for the call; the results by row."""
    host = processes.read(self.drawn)
    found = {}
    for place, row in enumerate(self.rows):
      if row is not None:
        count = int(host.count_V[place])
        found[row] = Result(
          host.token_VS[place, :count].tolist(),
          bool(host.finished_V[place]),
          not host.going_V[place],
        )
    return found


class RunningSlots:
  """Rows of trajectories while they are sampled, in calls of the programs.

  most: tokens of an observation.
  """

  def __init__(
    self,
    programs: SlotPrograms,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    most: int,
  ):
    self._programs, self._most = programs, most
    self._fed = programs.fed(traj)
    self._weights, self.table, drawn = programs.begin(
      params, traj=traj, key=key
    )
    self._total = traj.length_B.shape[0]
    self._shards = layout.parts(traj.num_prompts, 'sampled_rows')
    self._everywhere = mesh_lib.replicated(programs.mesh)
    self.first = Burst(list(range(self._total)), drawn)

  @property
  def widest(self) -> int:
    """The rows of a call at most, of all devices."""
    return self._programs.widths[0] * self._shards

  def feed(self, said: Mapping[int, tuple[Sequence[int], bool]]) -> None:
    """Puts observations after rows: (ids, whether it forgets)."""
    left = list(said)
    while left:
      width, slots = self._placed(left, (self._fed,))
      now = {row for row in slots if row is not None}
      left = [row for row in left if row not in now]
      ids_VO: Any = np.zeros((len(slots), self._most), np.int32)
      length_V: Any = np.zeros(len(slots), np.int32)
      forget_V: Any = np.zeros(len(slots), bool)
      for place, row in enumerate(slots):
        if row is not None:
          ids, forget_V[place] = said[row]
          ids_VO[place, : len(ids)], length_V[place] = ids, len(ids)
      observed = Observed(ids_VO=ids_VO, length_V=length_V, forget_V=forget_V)
      arrays = (self._chosen(slots, width), observed)
      chosen, observed = processes.put(arrays, self._everywhere)
      self.table = self._programs.feed(
        self._weights, self.table, chosen, observed
      )

  def sample(self, rows: Sequence[int]) -> Burst:
    """Starts a burst of the first rows that have slots."""
    width, slots = self._placed(rows, self._programs.widths)
    chosen = processes.put(self._chosen(slots, width), self._everywhere)
    self.table, drawn = self._programs.sample(self._weights, self.table, chosen)
    return Burst(slots, drawn)

  def _placed(self, rows, widths):
    """(slots of a shard, the row in each slot of all shards or None)."""
    share = self._total // self._shards
    by_shard: list[list[int]] = [[] for _ in range(self._shards)]
    for row in rows:
      by_shard[row // share].append(row)
    need = max(map(len, by_shard))
    width = min((w for w in widths if w >= need), default=widths[0])
    slots: list[int | None] = []
    for shard, own in enumerate(by_shard):
      own = own[:width]
      if width == share:  # each row has its slot
        places = range(shard * share, (shard + 1) * share)
        slots += [row if row in own else None for row in places]
      else:
        slots += [*own, *[None] * (width - len(own))]
    return width, slots

  def _chosen(self, slots, width):
    """The rows of slots; others fill those that are free."""
    share, row_V = self._total // self._shards, []
    for shard in range(self._shards):
      own = slots[shard * width : (shard + 1) * width]
      if width == share:
        row_V += range(share)
        continue
      local = [row - shard * share for row in own if row is not None]
      taken = set(local)
      others = (row for row in range(share) if row not in taken)
      row_V += [*local, *(next(others) for _ in range(width - len(local)))]
    live_V: Any = np.array([row is not None for row in slots])
    rows: Any = np.array(row_V, np.int32)
    return Chosen(row_V=rows, live_V=live_V)

  def probed(
    self, rows: Iterable[int], traj: Trajectories
  ) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, log-probs) of all rows after observations and bursts of some.

    Observations are random tokens of the prompts, the same ones for each row.
    """
    rng = np.random.default_rng(0)
    known = np.unique(processes.read(traj.prompt_NP))
    room = traj.response_BT.shape[1] - 2
    said = {}
    for row in range(self._total):
      count = min(rng.integers(1, self._most + 1), max(room, 0))
      said[row] = (rng.choice(known, count).tolist(), False)
    left = list(rows)
    while left:
      own = left[: self.widest]
      self.feed({row: said[row] for row in own})
      self.sample(own)
      left = left[self.widest :]
    done = self.table.rows
    response_BT, logp_BT = processes.read((done.response_BT, done.logp_BT))
    return response_BT, logp_BT


def make_programs(
  model: transformer.ModelConfig,
  sampling: SamplingConfig,
  turns: TurnConfig,
  mesh: jax.sharding.Mesh,
  slots: int | None,
) -> SlotPrograms:
  """Jits all; shapes compile on first use."""
  replicated = mesh_lib.replicated(mesh)
  # As of whole turns (engine): one layout, or the compiler's for split heads.
  split = mesh.shape['tensor'] > 1 or mesh.shape['sequence'] > 1
  rows = None if split else mesh_lib.rows(mesh)
  options = compilation.options(Platform.of_mesh(mesh))
  limits = {'cfg': model, 'turn_tokens': turns.max_turn_tokens}
  chunk = min(FEED, turns.max_observation_tokens)

  def jitted(function: Callable, out: Any, **fixed: Any) -> Callable:
    return jax.jit(
      functools.partial(function, **fixed),
      donate_argnames=() if function is slot_decode.begin else 'table',
      out_shardings=out,
      compiler_options=options,
    )

  return SlotPrograms(
    begin=jitted(
      slot_decode.begin,
      (None, rows, replicated),
      sampling=sampling,
      **limits,
    ),
    feed=jitted(slot_decode.feed, rows, chunk=chunk, **limits),
    sample=jitted(
      slot_decode.sample, (rows, replicated), cfg=model, sampling=sampling
    ),
    mesh=mesh,
    slots=slots,
    most_widths=min(MOST_WIDTHS, most_widths(model)),
  )


def _widths(
  rows: int, slots: int | None, shards: int, most: int
) -> tuple[int, ...]:
  """The numbers of slots of a shard that are tried, the most first."""
  first = rows if slots is None else min(rows, max(1, slots // shards))
  found = [first]
  while len(found) < most and found[-1] >= APART * FEWEST:
    found.append(found[-1] // APART)
  return tuple(found)


def _agree(known, found, rows) -> bool:
  """Returns whether the rows have the same bits in both."""
  own = np.array(rows)
  return all(
    np.array_equal(x[own], y[own]) for x, y in zip(known, found, strict=True)
  )
