"""Pairs of a tree search, and a link that is as sure as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import CreditContext

ARRAYS = [jnp.array([[x]]) for x in (1.5, 0.5)]


def loss(confidence, win=ARRAYS[0], lose=ARRAYS[1]):
  """Of one pair."""
  value = pref.ConfidentSigmoid()(win, lose, jnp.array([[confidence]]))
  return float(value[0, 0])


def softplus(x):
  return np.log1p(np.exp(x))


def test_link_by_hand():
  """Visits 8 and 2: confidence .8, e .2, d = 1."""
  expected = 0.8 * softplus(-1.0) + 0.2 * softplus(1.0)
  assert loss(0.8) == pytest.approx(expected, rel=1e-6)
  assert loss(1 / 3) == pytest.approx(loss(0.5), rel=1e-6)  # e <= 1/2


def test_equal_visits_have_no_slope():
  """e = 1/2: symmetric, so the gradient is 0 at d = 0."""
  zero = jnp.zeros((1, 1))
  slope = jax.grad(
    lambda d: pref.ConfidentSigmoid()(d, zero, zero + 0.5)[0, 0]
  )(zero)
  assert float(slope[0, 0]) == 0.0
  assert loss(0.5) == pytest.approx(loss(0.5, *reversed(ARRAYS)), rel=1e-6)


def test_sure_labels_are_those_of_dpo():
  """E0: confidence 1 is the sigmoid."""
  plain = pref.Sigmoid()(*ARRAYS, jnp.zeros((1, 1)))
  assert loss(1.0) == float(plain[0, 0])


def test_edges_by_hand(toy):
  """Row 2 is preferred to row 0 of its group, row 4 to row 7 of its own."""
  traj = toy.trajectories(
    np.ones((8, 2)),
    group_size=4,
    extras={
      'search_pair_B': np.array([-1, 0, 1, 0, 1, 0, 0, -1]),
      'confidence_B': np.array([1, 1, 0.8, 1, 0.5, 1, 1, 1]),
    },
  )
  edges = pref.SearchPairs()(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_array_equal(edges.weight_NE, [[0, 0, 1, 0], [1, 0, 0, 0]])
  np.testing.assert_array_equal(edges.win_NE, [[0, 1, 2, 3]] * 2)
  assert edges.lose_NE[0, 2] == 0 and edges.lose_NE[1, 0] == 3
  assert edges.margin_NE[0, 2] == np.float32(0.8)
