"""Whitening over the trained tokens of the batch."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

A = jnp.array([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0], [9.0, 9.0, 9.0]])
MASK = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1]])


def batch(toy):
  """Tokens 1..4 are trained; the last row has weight 0."""
  return toy.trajectories(
    MASK, group_size=3, weight_B=np.array([1.0, 1.0, 0.0])
  )


def test_by_hand(toy):
  """Mean 2.5, sample variance 5/3: 1.5 / 1.290994 = 1.161895."""
  white = credit.Whiten()(CreditContext(A, batch(toy))).value
  expected = [[-1.161895, -0.387298, 0], [0.387298, 1.161895, 0], [0, 0, 0]]
  np.testing.assert_allclose(white, expected, rtol=1e-5)
  # Population variance 5/4 instead: 1.5 / 1.118034.
  white = credit.Whiten(ddof=0)(CreditContext(A, batch(toy))).value
  np.testing.assert_allclose(white[0, 0], -1.341641, rtol=1e-5)


def test_invalid_rows_do_not_count(toy):
  """The last row has a weight, but nothing valid: as above."""
  traj = toy.trajectories(MASK, group_size=3, valid_B=np.array([1.0, 1.0, 0.0]))
  np.testing.assert_array_equal(
    credit.Whiten()(CreditContext(A, traj)).value,
    credit.Whiten()(CreditContext(A, batch(toy))).value,
  )


def test_eps_is_added_to_the_variance(toy):
  """5/3 + 7/3 = 4: divided by 2."""
  white = credit.Whiten(eps=7 / 3)(CreditContext(A, batch(toy))).value
  np.testing.assert_allclose(white[0], [-0.75, -0.25, 0], rtol=1e-6)


def test_row_advantages_count_by_token(toy):
  """[B] is broadcast first: rows of 1 and 3 tokens have mean (a + 3b) / 4."""
  traj = toy.trajectories(np.array([[1, 0, 0], [1, 1, 1]]), group_size=2)
  white = credit.Whiten()(CreditContext(jnp.array([1.0, 0.0]), traj)).value
  # Deviations .75, -.25: sample variance 1/4.
  np.testing.assert_allclose(
    white, [[1.5, 0, 0], [-0.5, -0.5, -0.5]], rtol=1e-5
  )


def test_idempotent_and_blind_to_scale_and_shift(toy):
  """E1."""
  whiten, traj = credit.Whiten(), batch(toy)
  white = whiten(CreditContext(A, traj)).value
  np.testing.assert_allclose(
    whiten(CreditContext(white, traj)).value, white, rtol=1e-5
  )
  np.testing.assert_allclose(
    whiten(CreditContext(3.0 * A + 5.0, traj)).value, white, rtol=1e-5
  )


def test_equal_advantages_stay_exactly_zero(toy):
  """E0: a tiny eps does not blow rounding up."""
  white = credit.Whiten()(
    CreditContext(jnp.full((3, 3), 0.1), batch(toy))
  ).value
  np.testing.assert_array_equal(white, np.zeros((3, 3)))
