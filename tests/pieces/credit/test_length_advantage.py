"""ADORA's predicate: the longest right against the mean wrong length."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def scaled(toy, reward, length, **fields):
  """The factor of one group."""
  B = len(reward)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    reward_B=np.asarray(reward, np.float32),
    length_B=np.asarray(length, np.int32),
  )
  return np.asarray(
    credit.LengthAdvantageScale(**fields)(
      CreditContext(jnp.ones(B), traj)
    ).value
  )


@pytest.mark.parametrize(
  'reward, length, factor',
  [
    ([1, 0, 0, 1], [10, 8, 10, 2], 1.0),  # 10 > 9
    ([1, 0, 0, 1], [5, 8, 10, 2], 0.1),  # 5 < 9
    ([1, 0, 0, 1], [9, 8, 10, 2], 0.1),  # 9 = 9: not longer
    ([0, 0, 0, 0], [5, 8, 10, 2], 0.1),  # no right row
    ([1, 1, 1, 1], [5, 8, 10, 2], 1.0),  # no wrong row
    ([1, 0, 0, 1], [5, 4, 4000, 2], 1.0),  # the truncated one is left out
  ],
)
def test_by_hand(toy, reward, length, factor):
  """The limit is 3900 tokens."""
  np.testing.assert_allclose(scaled(toy, reward, length), factor, rtol=1e-6)


def test_on_grpo_advantages(toy):
  """R = 2, 0, 0, 2 has A = +-.86602; scaled +-.086602."""
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=4,
    reward_B=np.array([2.0, 0, 0, 2]),
    length_B=np.array([1, 3, 3, 1], np.int32),
  )
  A = credit.GroupScale()(
    CreditContext(
      credit.GroupCenter()(CreditContext(traj.reward_B, traj)).value, traj
    )
  ).value
  piece = credit.LengthAdvantageScale(correct_above=1.01)
  expected = np.array([1, -1, -1, 1]) * 0.0866025
  np.testing.assert_allclose(
    piece(CreditContext(A, traj)).value, expected, rtol=1e-5
  )


def test_lambda_one_is_grpo(toy):
  """E0."""
  assert (scaled(toy, [1, 0], [1, 5], scale=1.0) == 1).all()


def test_a_common_length_does_not_matter(toy):
  """E0, below the limit."""
  for more in (0, 7, 1000):
    length = np.array([5, 8, 10, 2]) + more
    np.testing.assert_array_equal(
      scaled(toy, [1, 0, 0, 1], length), np.full(4, 0.1, np.float32)
    )
