"""Rows that share places in a cache: limits hold, and no row waits for ever."""

import random

import pytest

from rl_jax.decoding.cache_places import HostCache, Places

TOKENS = 10


def check(places, host, shards, share, count):
  """No place has two rows, none of which is on the host, too."""
  assert host.used == TOKENS * len(places.parked) <= host.tokens
  for shard in range(shards):
    rows = places.rows[shard]
    assert len(rows) == len(set(rows)) == count
    assert all(row // share == shard for row in rows)
    own = [row for row in range(shard * share, (shard + 1) * share)]
    held = [places.seats[row] for row in own if row in places]
    assert len(held) == len(set(held)) <= count
    assert all(
      places.rows[shard][places.seats[r]] == r for r in own if r in places
    )
  assert not any(row in places for row in places.parked)


@pytest.mark.parametrize('seed', range(20))
@pytest.mark.parametrize('on_host', [0, 2, 3, 7])
def test_all_rows_come_to_their_end(seed, on_host):
  """Random turns, answers and ends of rows, on one shard or on two."""
  rng = random.Random(seed)
  shards, share, count = 1 + seed % 2, 6, 1 + seed % 4
  host = HostCache(on_host * TOKENS)
  places = Places(shards, share, count, TOKENS, host)
  left = {row: rng.randrange(1, 5) for row in range(shards * share)}  # turns
  ready, waiting = list(left), []
  seen = [{} for _ in range(shards)]  # the contents of places
  for row in left:
    if row in places:
      seen[row // share][places.seats[row]] = row
  while left:
    for move in places.give(ready):
      there = seen[move.row // share]
      if move.left is not None:
        assert there[move.place] == move.left and move.left in waiting
        places.parked[move.left] = there[move.place]
      if move.row in places.parked:
        assert places.parked.pop(move.row) == move.row
      there[move.place] = move.row
    check(places, host, shards, share, count)
    for row in [row for row in ready if row in places]:
      assert seen[row // share][places.seats[row]] == row
      ready.remove(row)
      left[row] -= 1
      if left[row]:
        places.waits(row)
        waiting.append(row)
      else:
        del left[row]
        places.ends(row)
    for row in [row for row in waiting if rng.random() < 0.3]:
      waiting.remove(row)
      places.wakes(row)
      ready.append(row)
    rng.shuffle(ready)
  assert host.used == 0 and not places.parked
