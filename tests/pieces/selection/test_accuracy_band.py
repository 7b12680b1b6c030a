"""Balanced online difficulty filtering."""

import numpy as np
import pytest

from rl_jax.pieces import selection
from rl_jax.pieces.roles import CreditContext

# Means 0, 1/4, 1/2, 3/4, 1.
REWARD = np.array([[k > i for i in range(4)] for k in range(5)], np.float32)


def kept(toy, valid=None, reward=REWARD, **fields):
  """Weights of the five groups."""
  traj = toy.trajectories(
    np.ones((20, 1)),
    group_size=4,
    reward_B=np.ravel(reward),
    valid_B=np.ones(20) if valid is None else np.asarray(valid).ravel(),
  )
  return selection.AccuracyBand(**fields)(
    CreditContext(traj.reward_B, traj)
  ).value


@pytest.mark.parametrize(
  'low, high, expected',
  [
    (0.25, 0.75, [0, 1, 1, 1, 0]),  # both ends belong to the band
    (0.3, 0.7, [0, 0, 1, 0, 0]),
    (0.01, 0.5, [0, 1, 1, 0, 0]),
    (0.0, 1.0, [1, 1, 1, 1, 1]),  # GRPO: nothing is filtered
  ],
)
def test_by_hand(toy, low, high, expected):
  """The band decides."""
  np.testing.assert_array_equal(kept(toy, low=low, high=high), expected)


@pytest.mark.parametrize('reward', np.linspace(0.1, 0.9, 9))
def test_both_ends_belong_to_the_band_in_float32(toy, reward):
  """Five equal rewards, whose float32 mean is not always that number."""
  for size in (3, 5, 6, 7):
    traj = toy.trajectories(
      np.ones((size, 1)), group_size=size, reward_B=np.full(size, reward)
    )
    for low, high in ((float(reward), 1.0), (0.0, float(reward))):
      band = selection.AccuracyBand(low=low, high=high)
      np.testing.assert_array_equal(
        band(CreditContext(traj.reward_B, traj)).value, [1]
      )


def test_open_ends_are_dynamic_sampling(toy):
  """E0: any band inside (0, 1) around 1/4 to 3/4 equals ZeroVariance here."""
  traj = toy.trajectories(
    np.ones((20, 1)), group_size=4, reward_B=REWARD.ravel()
  )
  np.testing.assert_array_equal(
    kept(toy, low=0.01, high=0.99),
    selection.ZeroVariance()(CreditContext(traj.reward_B, traj)).value,
  )


def test_only_valid_rows_count(toy):
  """Without its one right row group 1 has mean 0; no rows, no group."""
  valid = np.ones((5, 4))
  valid[1, 0] = 0
  valid[2] = 0
  np.testing.assert_array_equal(kept(toy, valid), [0, 0, 0, 1, 0])
  np.testing.assert_array_equal(
    kept(toy, valid, low=0.0, high=1.0), [1, 1, 0, 1, 1]
  )
  one = np.tile([[0, 1, 0, 0]], (5, 1))
  half = np.full((5, 4), 0.5)  # one partly right row is a group
  np.testing.assert_array_equal(kept(toy, one, half), 1)
  with pytest.raises(ValueError, match='AccuracyBand.high = 1.5'):
    selection.AccuracyBand(high=1.5)
