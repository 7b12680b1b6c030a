"""PF-PPO's weights of four samples of one prompt."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext

REWARD = np.array([3.0, 1.0, 2.0, 0.0])


def factors(toy, reward=REWARD, valid=None, **fields):
  """Weights [B]."""
  B = len(reward)
  traj = toy.trajectories(
    np.ones((B, 2)),
    group_size=4,
    reward_B=np.asarray(reward),
    valid_B=np.ones(B) if valid is None else np.asarray(valid),
  )
  weight, metrics, _ = weights.RankFilter(**fields)(
    LossContext({}, traj, jax.random.key(0))
  )
  np.testing.assert_array_equal(weight[:, 0], weight[:, 1])
  filtered = np.asarray(metrics['policy/filtered_fraction'])
  np.testing.assert_array_equal(filtered, np.asarray(weight) == 0)
  return np.asarray(weight[:, 0])


BEST_RANDOM = dict(best=0.4, middle=0.1, worst=0.1)


@pytest.mark.parametrize(
  'fields, expected',
  # 4 w / sum w: best-worst 4 * 1 / 2; best-random 1.6 / .7, .4 / .7.
  [
    ({}, [2, 0, 0, 2]),
    (BEST_RANDOM, [2.285714, 0.571429, 0.571429, 0.571429]),
    (dict(best=1.0, middle=0.0, worst=0.0), [4, 0, 0, 0]),
    (dict(best=0.3, middle=0.3, worst=0.3), [1, 1, 1, 1]),
  ],
)
def test_by_hand(toy, fields, expected):
  """Best-worst, best-random, best of n, and equal weights: PPO."""
  np.testing.assert_allclose(factors(toy, **fields), expected, rtol=1e-5)


def test_ties_share_their_ranks(toy):
  """Two best and two worst: 1/2 each of weight 1, so all 1. One best, three
  worst: 4 / 2 and 4 / 2 / 3."""
  np.testing.assert_allclose(factors(toy, [1, 1, 0, 0]), 1, rtol=1e-6)
  np.testing.assert_allclose(
    factors(toy, [1, 0, 0, 0]), [2, 2 / 3, 2 / 3, 2 / 3], rtol=1e-6
  )
  np.testing.assert_allclose(factors(toy, [5, 5, 5, 5]), 1, rtol=1e-6)


def test_invalid_rows_have_no_rank(toy):
  """Without the best the middle one becomes it: 3 / 2 on two of three."""
  actual = factors(toy, valid=[0, 1, 1, 1])
  np.testing.assert_allclose(actual, [0, 0, 1.5, 1.5], rtol=1e-6)
  single = factors(toy, valid=[0, 0, 1, 0])
  np.testing.assert_allclose(single, [0, 0, 1, 0], rtol=1e-6)


def test_only_the_order_of_rewards_matters(toy):
  """E1: a monotone map, and a permutation of rows."""
  mapped = factors(toy, np.exp(REWARD) - 5.0, **BEST_RANDOM)
  np.testing.assert_allclose(mapped, factors(toy, **BEST_RANDOM), rtol=1e-6)
  turn = [2, 0, 3, 1]
  np.testing.assert_allclose(
    factors(toy, REWARD[turn]), factors(toy)[turn], rtol=1e-6
  )
