"""Filters of samples, by hand."""

import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def rows(toy, valid=None):
  B = 6
  valid = np.ones(B) if valid is None else np.asarray(valid)
  return toy.trajectories(np.ones((B, 2)), group_size=3, valid_B=valid)


def test_right_samples_share_the_weight_of_their_group(toy):
  """Two of three: 3/2 each; none: nothing. An invalid row is not a sample."""
  reward = np.array([1, 0, 1, 0, 0.5, 0.5], np.float32)
  found = credit.RewardAtLeast()(CreditContext(reward, rows(toy))).value
  np.testing.assert_allclose(found, [1.5, 0, 1.5, 0, 0, 0])
  found = credit.RewardAtLeast(threshold=0.5)(
    CreditContext(reward, rows(toy))
  ).value
  np.testing.assert_allclose(found, [1.5, 0, 1.5, 0, 1.5, 1.5])
  found = credit.RewardAtLeast()(
    CreditContext(reward, rows(toy, [0, 1, 1, 1, 1, 1]))
  ).value
  np.testing.assert_allclose(found, [0, 0, 2, 0, 0, 0])


def test_no_threshold_is_the_likelihood_of_all(toy):
  """A = 1 everywhere."""
  reward = np.arange(6, dtype=np.float32)
  low, whole = (
    credit.RewardAtLeast(threshold=-1.0),
    credit.BestFraction(fraction=1.0),
  )
  for piece in (low, whole):
    np.testing.assert_allclose(
      piece(CreditContext(reward, rows(toy))).value, np.ones(6)
    )


def test_the_best_of_the_batch_by_hand(toy):
  """ceil(0.3 6) = 2 rows: 6/2 each; three where two of them tie."""
  reward = np.array([0, 3, 1, 5, 2, 4], np.float32)
  piece = credit.BestFraction(fraction=0.3)
  np.testing.assert_allclose(
    piece(CreditContext(reward, rows(toy))).value, [0, 0, 0, 3, 0, 3]
  )
  np.testing.assert_allclose(
    piece(CreditContext(np.minimum(reward, 3), rows(toy))).value,
    [0, 2, 0, 2, 0, 2],
  )
  # ceil(0.3 5) = 2 of the valid ones.
  found = piece(CreditContext(reward, rows(toy, [1, 1, 1, 0, 1, 1]))).value
  np.testing.assert_allclose(found, [0, 2.5, 0, 0, 0, 2.5])
  scaled = piece(CreditContext(7 * reward - 3, rows(toy))).value
  np.testing.assert_allclose(
    scaled, piece(CreditContext(reward, rows(toy))).value
  )
