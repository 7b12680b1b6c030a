"""Hashes and permutations must not change: splits depend on them."""

import collections

import pytest

from rl_jax.tasks import draws


def test_stable_hash_is_pinned():
  """Golden: hashlib.blake2b(b'a\\x1f1', digest_size=8), little endian."""
  assert draws.stable_hash('a', 1) == 13924241962069754241
  assert draws.stable_hash('a1') != draws.stable_hash('a', 1)


def test_split_of_is_80_10_10():
  """Each share of 5000 keys lies within 4 standard deviations."""
  counts = collections.Counter(draws.split_of('key', i) for i in range(5000))
  assert abs(counts['train'] - 4000) < 4 * (5000 * 0.8 * 0.2) ** 0.5
  for split in ('validation', 'test'):
    assert abs(counts[split] - 500) < 4 * (5000 * 0.1 * 0.9) ** 0.5


@pytest.mark.parametrize('size', [1, 2, 3, 10, 45, 1000, 4095, 4096, 4097])
def test_permutation_is_a_bijection_with_its_inverse(size):
  permutation = draws.Permutation(size, 'key')
  images = [permutation.forward(i) for i in range(size)]
  assert sorted(images) == list(range(size))
  assert [permutation.backward(i) for i in images] == list(range(size))
  if size > 100:
    other = draws.Permutation(size, 'another')
    assert images != list(range(size))
    assert images != [other.forward(i) for i in range(size)]


def test_draws_depend_on_all_counters_and_stay_in_range():
  stream = draws.Draws('a', 1)
  values = [stream.below(7) for _ in range(200)]
  assert set(values) == set(range(7))
  again = draws.Draws('a', 1)
  assert values == [again.below(7) for _ in range(200)]
  other = draws.Draws('a', 2)
  assert values != [other.below(7) for _ in range(200)]
