"""The worst case of a group by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def cut(toy, reward, rho, valid=None):
  """min(R, a) of one group."""
  count = len(reward)
  valid = np.ones(count) if valid is None else np.asarray(valid)
  traj = toy.trajectories(np.ones((count, 1)), group_size=count, valid_B=valid)
  piece = credit.RobustReturn(rho=rho)
  return np.asarray(
    piece(CreditContext(jnp.asarray(reward, jnp.float32), traj)).value
  )


def worst(reward, a, rho):
  """The dual objective."""
  return np.minimum(reward, a).mean() - rho * (a - np.min(reward))


@pytest.mark.parametrize(
  'reward, rho, expected, value',
  [
    # A quarter of the mass moves from 3 to 0: (0 + 1 + 2 + 0) / 4.
    ([0, 1, 2, 3], 0.25, [0, 1, 2, 2], 0.75),
    ([1, 2, 3, 4], 0.25, [1, 2, 3, 3], 1.75),
    # Half of it: (0 + 1 + 0 + 0) / 4.
    ([0, 1, 2, 3], 0.5, [0, 1, 1, 1], 0.25),
    # Less than a response: a stays at the top, .2 of the mass moves.
    ([0, 1, 2, 3], 0.2, [0, 1, 2, 3], 0.9),
    # 6 of 8 right: 4 are left. 2 of 8: none is. 8 of 8: none is worse.
    ([1, 1, 1, 1, 1, 1, 0, 0], 0.25, [1, 1, 1, 1, 1, 1, 0, 0], 0.5),
    ([1, 1, 0, 0, 0, 0, 0, 0], 0.25, [0] * 8, 0.0),
    ([1] * 8, 0.25, [1] * 8, 1.0),
  ],
)
def test_by_hand(toy, reward, rho, expected, value):
  """And no other a of a grid has a larger dual objective."""
  found = cut(toy, reward, rho)
  np.testing.assert_array_equal(found, expected)
  a = found.max()
  np.testing.assert_allclose(worst(reward, a, rho), value, atol=1e-6)
  grid = np.linspace(min(reward), max(reward), 61)
  assert max(worst(reward, x, rho) for x in grid) <= value + 1e-6


def test_no_ball_is_the_reward(toy):
  """E0: then GroupCenter is GRPO without std."""
  reward = np.array([0.3, -1.0, 2.0, 0.7], np.float32)
  np.testing.assert_array_equal(cut(toy, reward, 0.0), reward)


def test_a_share_that_rounds_counts_whole(toy):
  """13 / 22 of 22 are below 13 in float32: the 14th from the top is 8."""
  reward = np.arange(22.0)
  assert np.float32(13 / 22) * np.float32(22) < 13
  assert cut(toy, reward, 13 / 22).max() == 8.0


def test_a_quarter_moves_by_default(toy):
  """Five of twenty responses move: the sixth from the top is 14."""
  traj = toy.trajectories(np.ones((20, 1)), group_size=20)
  found = credit.RobustReturn()(CreditContext(jnp.arange(20.0), traj)).value
  assert found.max() == 14.0


def test_shift_scale_and_order_move_with_it(toy):
  """E1."""
  reward = np.array([0.5, -1.0, 2.0, 0.0, 1.5])
  found = cut(toy, reward, 0.4)
  np.testing.assert_array_equal(found, [0.5, -1, 0.5, 0, 0.5])
  np.testing.assert_allclose(
    cut(toy, 3.0 * reward + 4.0, 0.4), 3.0 * found + 4.0, rtol=1e-6
  )
  np.testing.assert_array_equal(cut(toy, reward[::-1], 0.4), found[::-1])


def test_groups_are_cut_by_themselves(toy):
  """The second one is 0, 10, 20, 30."""
  traj = toy.trajectories(np.ones((8, 1)), group_size=4)
  both = jnp.array([0.0, 1, 2, 3, 0, 10, 20, 30])
  found = credit.RobustReturn()(CreditContext(both, traj)).value
  np.testing.assert_array_equal(found, [0, 1, 2, 2, 0, 10, 20, 20])


def test_invalid_rows_do_not_count(toy):
  """A third of three valid rows moves; 90 and NaN stand for failures."""
  for bad in (90.0, np.nan, -90.0):
    found = cut(toy, [0.0, 1.0, bad, 2.0], 0.34, [1, 1, 0, 1])
    np.testing.assert_array_equal(found, [0, 1, 0, 1])


def test_nothing_to_compare_is_zero(toy):
  """Centred: a group of one, one valid row, equal rewards, no valid row."""
  for reward, valid in (
    ([2.0], [1]),
    ([2.0, 5.0], [0, 1]),
    ([0.1, 0.1, 0.1], [1, 1, 1]),
    ([2.0, 5.0], [0, 0]),
  ):
    count = len(reward)
    traj = toy.trajectories(
      np.ones((count, 1)), group_size=count, valid_B=np.asarray(valid, float)
    )
    found = credit.RobustReturn()(CreditContext(jnp.array(reward), traj)).value
    found = credit.GroupCenter()(CreditContext(found, traj)).value
    np.testing.assert_array_equal(found, 0.0)
