"""Tapered weights of TOPR by hand."""

import numpy as np

from rl_jax.pieces import losses

# Product ratios of the rows: e, .4, 1.7, .4. Rows 1 and 2 are wrong.
RATIO = np.array([[np.e, 1.0], [0.5, 0.8], [1.7, 1.0], [0.4, 1.0]])
ADV = np.array([[1.0, 1], [-2, -2], [-1, -1], [1, 1]])
OLD = np.full((4, 2), -1.0)


def coefficient(toy, loss=None, ratio=RATIO, **fields):
  """-dl/dlogp."""
  return toy.coefficient(
    loss or losses.TOPR(),
    OLD + np.log(ratio),
    advantages_BT=ADV,
    **{'logp_old_BT': OLD, **fields},
  )


def test_by_hand(toy):
  """Right rows weigh 1; wrong rows .4 (A = -2), and 1.7 cut to 1."""
  np.testing.assert_allclose(
    coefficient(toy), [[1, 1], [-0.8, -0.8], [-1, -1], [1, 1]], rtol=1e-5
  )


def test_limits(toy):
  """Row by row: e cut to 2; .4 raised to .5; 1.7 kept; .4 kept."""
  loss = losses.TOPR(
    positive_low=0.0, positive_high=2.0, negative_low=0.5, negative_high=3.0
  )
  expected = np.array([[2.0], [-1.0], [-1.7], [0.4]]) * np.ones((4, 2))
  np.testing.assert_allclose(coefficient(toy, loss), expected, rtol=1e-5)


def test_on_policy_it_is_reinforce(toy):
  """E1: all weights 1."""
  np.testing.assert_allclose(
    coefficient(toy, ratio=np.ones((4, 2))), ADV, rtol=1e-6
  )


def test_wrong_rows_that_became_unlikely_are_left_alone(toy):
  """Naive off-policy REINFORCE would keep pushing with -1."""
  actual = coefficient(toy, ratio=np.full((4, 2), 1e-3))
  assert np.abs(actual[1:3]).max() < 1e-5


def test_denominator(toy):
  """The behaviour policy in place of the old one."""
  loss = losses.TOPR(denominator='behaviour')
  actual = coefficient(toy, loss, logp_old_BT=0 * OLD, logp_behaviour_BT=OLD)
  np.testing.assert_allclose(actual, coefficient(toy), rtol=1e-6)
