"""Shares of data sets: exact proportions, own selectors, restored states."""

import copy

import jax
import numpy as np
import pytest

from rl_jax.pieces.selection import ShuffledPass, Uniform
from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.rollouts.mixed_selector import MixedSelector
from rl_jax.types import GroupSummary

KEY = jax.random.key(0)


def make(sizes=(5, 20), weights=(3.0, 1.0), selector=None):
  names = 'abc'[: len(sizes)]
  return MixedSelector(
    selector or ShuffledPass(),
    dict(zip(names, sizes, strict=True)),
    dict(zip(names, weights, strict=True)),
    KEY,
  )


def summary(count):
  values = np.arange(count * 2, dtype=np.float32).reshape(count, 2)
  return GroupSummary(
    reward_NG=values, right_NG=values > 0, length_NG=values, entropy_NG=values
  )


def test_by_hand():
  """Weights 3 : 1: the tie at the second draw goes to the first."""
  ids = make().select(8)
  assert [int(i >= 5) for i in ids] == [0, 0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize('weights', [(1.0, 1.0), (0.7, 0.3), (1e-3, 1.0)])
def test_shares_are_kept_within_one_prompt(weights):
  selector, share = make(weights=weights), weights[0] / sum(weights)
  drawn = np.concatenate([selector.select(7) for _ in range(60)]) < 5
  counts = np.arange(1, len(drawn) + 1)
  assert np.abs(drawn.cumsum() - share * counts).max() < 1.0


def test_every_part_is_passed_in_full():
  """15 draws of five prompts are three of each."""
  ids = make().select(20)
  assert np.bincount(ids[ids < 5]).tolist() == [3] * 5
  assert len(set(ids[ids >= 5])) == 5


def test_one_data_set_is_its_selector():
  alone = HostSelector(ShuffledPass(), 9, KEY)
  mixed = make((9,), (0.2,))
  for _ in range(4):
    np.testing.assert_array_equal(mixed.select(5), alone.select(5))


@pytest.mark.parametrize('piece', [ShuffledPass(), Uniform()])
def test_a_restored_state_draws_the_same(piece):
  """Also with batches of another size before the save."""
  first = make((9, 11, 30), (1.0, 2.0, 0.5), piece)
  first.observe(first.select(6), summary(6))
  state = copy.deepcopy(first.state)
  expected = [first.select(4) for _ in range(5)]
  second = make((9, 11, 30), (1.0, 2.0, 0.5), piece)
  second.state = state
  np.testing.assert_array_equal([second.select(4) for _ in range(5)], expected)


def test_outcomes_reach_the_part_of_their_prompt():
  seen = []

  class Spy(ShuffledPass):
    def observe(self, state, ids, summary):
      seen.append((ids.shape[0], summary.reward_NG.shape))
      return {**state, 'visits': state['visits'].at[ids].set(-1)}

  mixed = make(selector=Spy())
  ids = np.array([7, 0, 24], np.int32)
  mixed.observe(ids, summary(3))
  parts = mixed.state['parts']
  assert np.flatnonzero(parts['a']['visits'] == -1).tolist() == [0]
  assert np.flatnonzero(parts['b']['visits'] == -1).tolist() == [2, 19]
  assert sorted(seen) == [(1, (1, 2)), (2, (2, 2))]


def test_an_empty_data_set_is_named():
  with pytest.raises(ValueError, match="'b' has no prompt"):
    make((3, 0))
