"""Discounted returns by hand."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

HALF = credit.DiscountedReturn(gamma=0.5)


def test_by_hand(toy):
  """2; 0 + 2 / 2 = 1; 1 + 1 / 2 = 1.5."""
  traj = toy.trajectories(np.ones((1, 3)), group_size=1)
  actual = HALF(CreditContext(jnp.array([[1.0, 0.0, 2.0]]), traj)).value
  np.testing.assert_allclose(actual, [[1.5, 1.0, 2.0]])


def test_an_observation_passes_the_return_through(toy):
  """No discount across it, and its reward of 9 is dropped."""
  traj = toy.trajectories(np.array([[1.0, 1, 0, 1]]), group_size=1)
  actual = HALF(CreditContext(jnp.array([[1.0, 0.0, 9.0, 2.0]]), traj)).value
  np.testing.assert_allclose(actual, [[1.5, 1.0, 0.0, 2.0]])


def test_an_outcome_reward_sits_on_the_last_token(toy):
  """Row 1 has two tokens: 4 / 2, 4."""
  traj = toy.trajectories(np.array([[1.0, 1, 1], [1, 1, 0]]), group_size=2)
  actual = HALF(CreditContext(jnp.array([8.0, 4.0]), traj)).value
  np.testing.assert_allclose(actual, [[2, 4, 8], [2, 4, 0]])


def test_without_discount_it_is_the_broadcast(toy):
  """E0: every kept token carries the outcome."""
  traj = toy.trajectories(np.array([[1.0, 1, 0, 1]]), group_size=1)
  actual = credit.DiscountedReturn()(
    CreditContext(jnp.array([3.0]), traj)
  ).value
  np.testing.assert_array_equal(actual, [[3, 3, 0, 3]])


def test_linear_in_the_reward(toy):
  """E1."""
  traj = toy.trajectories(np.ones((1, 3)), group_size=1)
  a, b = jnp.array([[1.0, 0.3, 2.0]]), jnp.array([[0.1, -1.0, 0.5]])
  np.testing.assert_allclose(
    HALF(CreditContext(2 * a + b, traj)).value,
    2 * HALF(CreditContext(a, traj)).value + HALF(CreditContext(b, traj)).value,
    rtol=1e-5,
  )
