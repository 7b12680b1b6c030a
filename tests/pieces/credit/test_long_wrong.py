"""STCR of APO: the factor 2 - 1.00001^-(excess)."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def factor(toy, reward, length, **fields):
  """The factors of one group."""
  B = len(reward)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    reward_B=np.asarray(reward, np.float32),
    length_B=np.asarray(length, np.int32),
  )
  return np.asarray(
    credit.LongWrongScale(**fields)(CreditContext(jnp.ones(B), traj)).value
  )


def test_by_hand(toy):
  """Mean right length 200; excess 10, 1000, 10000: 1.0001, 1.00995, 1.09516;
  the shorter wrong row and the long right one keep 1."""
  actual = factor(toy, [1, 1, 0, 0, 0, 0], [100, 300, 210, 1200, 10200, 50])
  expected = [1, 1, 1.0001, 1.00995, 1.09516, 1]
  np.testing.assert_allclose(actual, expected, rtol=5e-6)


def test_limits(toy):
  """E0: growth 0 and groups without a right row change nothing; at most 2."""
  reward, length = [1, 0, 0], [5, 900, 90000]
  np.testing.assert_array_equal(factor(toy, reward, length, growth=0.0), 1)
  np.testing.assert_array_equal(factor(toy, [0, 0, 0], length), 1)
  np.testing.assert_allclose(
    factor(toy, reward, length, growth=1.0), [1, 2, 2], rtol=1e-6
  )


def test_growth_is_a_base(toy):
  """b = 2, one and two tokens too many: 2 - 1/2 and 2 - 1/4."""
  actual = factor(toy, [1, 0, 0], [5, 6, 7], growth=1.0)
  np.testing.assert_allclose(actual, [1, 1.5, 1.75], rtol=1e-6)


def test_order_of_rows_does_not_matter(toy):
  """E1."""
  reward, length = np.array([1, 0, 0, 1]), np.array([5, 9, 900, 7])
  turn = [2, 0, 3, 1]
  np.testing.assert_allclose(
    factor(toy, reward[turn], length[turn]),
    factor(toy, reward, length)[turn],
    rtol=1e-6,
  )
