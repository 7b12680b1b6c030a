"""Random draws from stable hashes: equal on every machine and version."""

from collections.abc import Callable
import hashlib
import itertools
import random
from typing import Any, TypeVar

T = TypeVar('T')

# Of every ten buckets eight are train, one is validation, one is test.
_BUCKETS = ('train',) * 8 + ('validation', 'test')
# Positions modulo 10, of a permuted list, in each split.
OWNED = {'train': range(8), 'validation': (8,), 'test': (9,)}


def num_owned(split: str, count: int) -> int:
  """Returns how many of `count` permuted positions a split has."""
  tens, rest = divmod(count, 10)
  return sum(tens + (position < rest) for position in OWNED[split])


def owned(split: str, index: int) -> int:
  """The position of the index-th one of a split."""
  positions = OWNED[split]
  return index // len(positions) * 10 + positions[index % len(positions)]


def stable_hash(*parts: Any) -> int:
  """A 64-bit integer that depends only on the text of the parts."""
  text = '\x1f'.join(str(part) for part in parts)
  digest = hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8)
  return int.from_bytes(digest.digest(), 'little')


def split_of(*parts: Any) -> str:
  """80% train, 10% validation, 10% test, by the hash of the parts."""
  return _BUCKETS[stable_hash('split', *parts) % 10]


class Draws:
  """A stream of integers that is a function of its counter parts."""

  def __init__(self, *parts: Any):
    # Python guarantees the same sequence across versions for random() only.
    self._random = random.Random(stable_hash(*parts))

  def below(self, bound: int) -> int:
    """An integer in [0, bound)."""
    return int(self._random.random() * bound)

  def uniform(self) -> float:
    """A float in [0, 1)."""
    return self._random.random()

  def choice(self, items: Any) -> Any:
    """One element of a sequence."""
    return items[self.below(len(items))]


def first_of_split(
  split: str,
  name: str,
  counters: tuple[Any, ...],
  draw: Callable[[Draws], tuple[tuple[Any, ...], T] | None],
) -> tuple[T, Draws]:
  """The first drawn problem that belongs to a split, and the rest of its draws.

  Args:
    split: where the hash of (name, *identity) must put the problem.
    name: of the kind of problem.
    counters: attempt k draws from Draws(name, *counters, k).
    draw: draws -> (identity, problem); None: the draw is not a problem.
  """
  for attempt in itertools.count():
    stream = Draws(name, *counters, attempt)
    drawn = draw(stream)
    if drawn is not None and split_of(name, *drawn[0]) == split:
      return drawn[1], stream
  raise AssertionError('counters do not end')


class Permutation:
  """A keyed bijection of range(size) in constant memory.

  A four-round Feistel network on the next even number of bits; values outside
  the range are permuted again until they fall inside (cycle walking).
  """

  def __init__(self, size: int, key: Any):
    self._size = size
    self._half = max(1, ((size - 1).bit_length() + 1) // 2)
    self._keys = [stable_hash(key, r) for r in range(4)]

  def forward(self, value: int) -> int:
    """The image of value."""
    return self._walk(value, self._keys)

  def backward(self, value: int) -> int:
    """The value whose image this is."""
    half, mask = self._half, (1 << self._half) - 1
    swapped = self._walk(_swap(value, half, mask), self._keys[::-1], True)
    return _swap(swapped, half, mask)

  def _walk(self, value, keys, swapped=False):
    half, mask = self._half, (1 << self._half) - 1
    while True:
      for key in keys:
        left, right = value >> half, value & mask
        value = right << half | (left ^ _mix(right ^ key) & mask)
      inside = _swap(value, half, mask) if swapped else value
      if inside < self._size:
        return value


def _swap(value: int, half: int, mask: int) -> int:
  return (value & mask) << half | value >> half


def _mix(x: int) -> int:
  """The finaliser of splitmix64."""
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
  x = (x ^ x >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
  return x ^ x >> 31
