"""The lead of the best sample, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def lead(toy, reward, valid=(1, 1, 1, 1)):
  """BestOfGroup on groups of four one-token rows."""
  groups = len(reward) // 4
  traj = toy.trajectories(
    np.ones((len(reward), 1)),
    group_size=4,
    valid_B=np.tile(np.array(valid, float), groups),
  )
  return credit.BestOfGroup()(CreditContext(jnp.array(reward), traj)).value


def test_by_hand(toy):
  """.9 leads .5 by .4; the second group has a tie."""
  actual = lead(toy, [0.2, 0.9, 0.5, 0.1, 1.0, 1.0, 0.0, 0.0])
  np.testing.assert_allclose(actual, [0, 0.4, 0, 0, 0, 0, 0, 0], rtol=1e-6)


def test_after_scaling_it_is_pass_at_k(toy):
  """[1, 0, 0, 0] has sample std 1/2: the best gets 2."""
  traj = toy.trajectories(np.ones((4, 1)), group_size=4)
  scaled = credit.GroupScale()(
    CreditContext(jnp.array([1.0, 0, 0, 0]), traj)
  ).value
  actual = credit.BestOfGroup()(CreditContext(scaled, traj)).value
  np.testing.assert_allclose(actual, [2, 0, 0, 0], rtol=1e-5)


@pytest.mark.parametrize(
  'valid, expected', [((1, 0, 1, 1), [0, 0, 0.3, 0]), ((0, 1, 0, 0), [0] * 4)]
)
def test_invalid_rows_do_not_compete(toy, valid, expected):
  """Without row 1 row 2 leads by .3; a single row has no lead."""
  actual = lead(toy, [0.2, 0.9, 0.5, 0.1], valid)
  np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_it_sums_to_the_gain_of_the_maximum(toy):
  """A constant drops out, and order does not matter. E1."""
  base = lead(toy, [0.2, 0.9, 0.5, 0.1])
  np.testing.assert_allclose(
    lead(toy, [5.2, 5.9, 5.5, 5.1]), base, rtol=1e-5, atol=1e-6
  )
  np.testing.assert_array_equal(lead(toy, [0.1, 0.5, 0.9, 0.2]), base[::-1])
