"""The length-weighted baseline of OPO by hand."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

REWARD = jnp.array([1.0, 0, 0, 1])
LENGTH = np.array([4, 1, 1, 2])


def record(toy, length=LENGTH, **fields):
  """One group of four rows of given lengths."""
  mask = (np.arange(4) < np.array(length)[:, None]).astype(np.float32)
  return toy.trajectories(mask, group_size=4, **fields)


def test_by_hand(toy):
  """Baseline (4 + 2) / 8 = 3/4."""
  actual = credit.LengthWeightedCenter()(
    CreditContext(REWARD, record(toy))
  ).value
  np.testing.assert_allclose(actual, [0.25, -0.75, -0.75, 0.25], rtol=1e-6)


def test_equal_lengths_are_group_centring(toy):
  """E1."""
  traj = record(toy, [3, 3, 3, 3])
  reward = jnp.array([0.3, -1.0, 2.0, 0.5])
  np.testing.assert_allclose(
    credit.LengthWeightedCenter()(CreditContext(reward, traj)).value,
    credit.GroupCenter()(CreditContext(reward, traj)).value,
    rtol=1e-5,
  )


def test_a_constant_drops_out(toy):
  """E1, and equal rewards give exactly 0."""
  piece, traj = credit.LengthWeightedCenter(), record(toy)
  np.testing.assert_allclose(
    piece(CreditContext(REWARD + 10, traj)).value,
    piece(CreditContext(REWARD, traj)).value,
    rtol=1e-5,
  )
  for lengths in ([4, 1, 1, 2], [4, 3, 3, 3], [4, 3, 4, 2]):
    for reward in (0.1, 0.7):  # float32 means of these are not always exact
      equal = piece(
        CreditContext(jnp.full(4, reward), record(toy, lengths))
      ).value
      np.testing.assert_array_equal(equal, 0)


def test_invalid_rows_do_not_count(toy):
  """Without row 0 the baseline is 2 / 4; a single valid row has 0."""
  traj = record(toy, valid_B=np.array([0.0, 1, 1, 1]))
  actual = credit.LengthWeightedCenter()(CreditContext(REWARD, traj)).value
  np.testing.assert_allclose(actual, [0, -0.5, -0.5, 0.5], rtol=1e-6)
  traj = record(toy, valid_B=np.array([1.0, 0, 0, 0]))
  actual = credit.LengthWeightedCenter()(CreditContext(REWARD, traj)).value
  np.testing.assert_array_equal(actual, 0)
