"""Rewards that fall with the cost, by hand."""

import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def shaped(toy, cost, reward, state=None, valid=None, **fields):
  B = len(cost)
  piece = shaping.CostReward(**fields)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    extras={'cost_B': np.asarray(cost, np.float32)},
    valid_B=np.ones(B) if valid is None else np.asarray(valid),
  )
  state = piece.init(5) if state is None else state
  return piece(CreditContext(np.asarray(reward, np.float32), traj, state))


def test_three_costs_by_hand(toy):
  """z = 10, 20, 30, percentiles 11 and 29: c = 1, 1/2, 0; alpha 0.6."""
  found, state = shaped(toy, [100, 400, 900], [1, 1, 1])
  np.testing.assert_allclose(found, [1.0, 0.7, 0.4], rtol=1e-5)
  np.testing.assert_allclose(state['costs'][-3:], [10, 20, 30])
  wrong, _ = shaped(toy, [100, 400, 900], [0, 1, -1])
  np.testing.assert_allclose(wrong, [0, 0.7, -1], rtol=1e-5)


def test_alpha_0_changes_nothing_and_equal_costs_are_a_half(toy):
  found, _ = shaped(toy, [1, 4, 9], [1, 0, 1], alpha=0.0)
  np.testing.assert_allclose(found, [1, 0, 1])
  found, _ = shaped(toy, [4, 4], [1, 1])
  np.testing.assert_allclose(found, [0.7, 0.7], rtol=1e-6)


@pytest.mark.parametrize('cost', np.linspace(0.1, 1.1, 11))
def test_equal_costs_are_equal_in_float32(toy, cost):
  """A right row has .4 + .6 / 2, however many have that cost: 88 cases.

  So it is beside a few others, where both percentiles lie among equal costs.
  """
  for count in range(2, 10):
    found, _ = shaped(toy, [cost] * count, [1] * count)
    np.testing.assert_allclose(found, 0.7, rtol=1e-6)
  costs = [0.01] + [cost] * 98 + [100.0]
  found, _ = shaped(toy, costs, [1] * 100)
  np.testing.assert_allclose(found, 0.7, rtol=1e-6)


def test_costs_that_differ_by_rounding_are_equal(toy):
  """Sums of prices in another order, of 3e-7 of their size."""
  costs = [0.3, 0.3000001]
  found, _ = shaped(toy, costs, [1, 1])
  np.testing.assert_allclose(found, 0.7, rtol=1e-6)


def test_the_window_holds_the_last_costs_of_valid_rows(toy):
  """The window holds the last three of 1, 4, 9 and 16, not the invalid 25."""
  _, state = shaped(toy, [1, 4], [1, 1], window=3)
  _, state = shaped(
    toy, [9, 25, 16], [1, 1, 1], state, valid=[1, 0, 1], window=3
  )
  np.testing.assert_allclose(state['costs'], [2, 3, 4])


def test_what_is_malformed_has_minus_one(toy):
  """The second row has a wrong form and the third no end; both were right."""
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=4,
    extras={
      'cost_B': np.array([4.0, 4.0, 4.0, 4.0], np.float32),
      'malformed_B': np.array([0.0, 2.0, 0.0, 0.0]),
    },
    finished_B=np.array([True, True, False, True]),
  )
  reward_B = np.array([1.0, 1.0, 1.0, 0.0], np.float32)

  def found(**fields):
    piece = shaping.CostReward(**fields)
    return piece(CreditContext(reward_B, traj, piece.init(5))).value

  np.testing.assert_allclose(found(malformed='malformed'), [0.7, -1, -1, 0])
  np.testing.assert_allclose(found(), [0.7, 0.7, 0.7, 0])
