"""Places of episodes in the cache, and rows that wait in the host's memory.

A cache may have fewer places than there are rows. A row needs one while its
turn is open. If none is free, that of the row which has waited for its answer
for longest becomes its place: the keys and values of that row move to the
memory of the host, and return once the row has been answered and finds a place.
They are copied, so no bit of a row depends on any of this.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from rl_jax.runtime import processes


class HostCache:
  """The memory of the host for keys and values of rows, of all tables.

  tokens: that have room at most; 0: none is used.
  """

  def __init__(self, tokens: int = 0):
    self.tokens = tokens
    self.used = self.most = 0

  def take(self, tokens: int) -> None:
    """Notes that so many tokens come, or that -tokens go."""
    self.used += tokens
    self.most = max(self.most, self.used)

  def has_room(self, tokens: int, returns: bool) -> bool:
    """Returns whether a row of so many tokens may move here.

    returns: for one that leaves. Without that there must be room for one more,
    or rows on either side could wait for each other for ever.
    """
    return self.used + (2 - returns) * tokens <= self.tokens


class Copy:
  """Keys and values of one row, which begin to move to the host.

  keys: arrays on the devices with a line for each shard; `shard` is the row's.
  """

  def __init__(self, keys: Any, shard: int):
    leaves, self._tree = jax.tree.flatten(keys)
    self._shard = shard
    self._layouts = [(x.shape, x.dtype, x.sharding) for x in leaves]
    # The parts of each array by where they lie in its line.
    self._parts = [
      {
        _rest(x.index): x.data
        for x in leaf.addressable_shards
        if self._has(x.index)
      }
      for leaf in leaves
    ]
    for part in jax.tree.leaves(self._parts):
      part.copy_to_host_async()

  def land(self) -> None:
    """Waits until all is on the host; the devices then hold nothing of it."""
    self._parts = processes.read(self._parts)

  def on_devices(self) -> Any:
    """The arrays that were copied; lines of other shards are 0."""
    with jax.transfer_guard('allow'):  # as explicit as device_put
      found = [
        jax.make_array_from_callback(
          shape, layout, self._reader(n, shape, dtype)
        )
        for n, (shape, dtype, layout) in enumerate(self._layouts)
      ]
    return jax.tree.unflatten(self._tree, found)

  def _reader(self, n, shape, dtype):
    def part(index):
      if self._has(index):
        return np.asarray(self._parts[n][_rest(index)])
      size = [len(range(m)[own]) for m, own in zip(shape, index, strict=True)]
      return np.zeros(size, dtype)

    return part

  def _has(self, index):
    return (index[0].start or 0) == self._shard


def _rest(index):
  return tuple((part.start or 0, part.stop) for part in index[1:])


class Move(NamedTuple):
  """A row gets a place; `left` has had it until now, None: it was free."""

  row: int
  place: int
  left: int | None


class Places:
  """The places of the cache of a table, a part of them on each shard.

  share: rows of a shard. count: its places. tokens: of a place.
  """

  def __init__(
    self, shards: int, share: int, count: int, tokens: int, host: HostCache
  ):
    self._share, self._host, self.tokens = share, host, tokens
    # The row of each place that holds it, or held it last; and the reverse.
    self.rows = [[*range(x * share, x * share + count)] for x in range(shards)]
    self.seats = {row: n for own in self.rows for n, row in enumerate(own)}
    self._of = dict(self.seats)  # of rows that hold their place
    self._free: list[list[int]] = [[] for _ in range(shards)]
    self._waits: dict[int, None] = {}  # rows with a place, the longest first
    self.parked: dict[int, Any] = {}  # what rows have on the host

  @property
  def used(self) -> int:
    """The places that rows hold."""
    return len(self._of)

  @property
  def limited(self) -> bool:
    """Returns whether there are fewer places than rows."""
    return len(self.rows[0]) < self._share

  def __contains__(self, row: int) -> bool:
    return row in self._of

  def waits(self, row: int) -> None:
    """A row waits for an answer: another one may get its place."""
    if row in self._of:
      self._waits[row] = None

  def wakes(self, row: int) -> None:
    """A row has been answered: it keeps its place if it has one."""
    self._waits.pop(row, None)

  def ends(self, row: int) -> None:
    """A row is over: its place is free."""
    self.wakes(row)
    if row in self._of:
      self._free[row // self._share].append(self._of.pop(row))
    if self.parked.pop(row, None) is not None:
      self._host.take(-self.tokens)

  def give(self, rows: Iterable[int]) -> list[Move]:
    """Gives places to those of the rows that have none, as far as there are.

    The moves are to be made in their order: what `left` has is put into
    `parked`, and what `row` has there, if anything, is taken out.
    """
    return [move for row in rows if (move := self._given(row)) is not None]

  def _given(self, row):
    if row in self._of:
      return None
    shard, left = row // self._share, None
    if self._free[shard]:
      place = self._free[shard].pop()
    else:
      waits = (one for one in self._waits if one // self._share == shard)
      left = next(waits, None)
      if left is None:
        return None
      if not self._host.has_room(self.tokens, row in self.parked):
        return None
      self._waits.pop(left)
      place = self._of.pop(left)
      self._host.take(self.tokens)
    if row in self.parked:
      self._host.take(-self.tokens)
    self._of[row] = self.seats[row] = place
    del self.seats[self.rows[shard][place]]
    self.rows[shard][place] = row
    return Move(row, place, left)
