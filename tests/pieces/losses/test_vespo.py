"""Sequence weights of VESPO by hand."""

import numpy as np

from rl_jax.pieces import losses

# A >= 0: w^2 e^(3 (1 - w)). A < 0: w^3 e^(2 (1 - w)).
#   w = .5: .25 e^1.5 = 1.120422;  .125 e = .339785
#   w = 2:  4 e^-3 = .199148;      8 e^-2 = 1.082682
RATIO = np.array([[0.5, 1.0], [1.0, 0.5], [4.0, 0.5], [2.0, 1.0]])
ADV = np.array([[1.0, 1], [-1, -1], [1, 1], [-1, -1]])
OLD = np.full((4, 2), -1.0)


def coefficient(toy, loss=None, ratio=RATIO, **fields):
  """-dl/dlogp."""
  return toy.coefficient(
    loss or losses.VESPO(),
    OLD + np.log(ratio),
    logp_old_BT=OLD,
    advantages_BT=ADV,
    **fields,
  )


def test_by_hand(toy):
  """The table above, on both tokens of a row."""
  weight = np.array([[1.120422], [-0.339785], [0.199148], [-1.082682]])
  np.testing.assert_allclose(
    coefficient(toy), weight * np.ones((4, 2)), rtol=1e-5
  )


def test_on_policy_it_is_reinforce(toy):
  """E1: phi(1) = 1."""
  np.testing.assert_allclose(
    coefficient(toy, ratio=np.ones((4, 2))), ADV, rtol=1e-6
  )


def test_without_power_and_decay_it_is_reinforce_anywhere(toy):
  """phi = 1."""
  flat = losses.VESPO(
    positive_power=0.0,
    positive_decay=0.0,
    negative_power=0.0,
    negative_decay=0.0,
  )
  np.testing.assert_allclose(coefficient(toy, flat), ADV, rtol=1e-6)


def test_only_the_product_counts(toy):
  """E1: the same ratio on another token of the row."""
  np.testing.assert_allclose(
    coefficient(toy, ratio=RATIO[:, ::-1]), coefficient(toy), rtol=1e-5
  )


def test_extreme_ratios_have_weight_zero(toy):
  """Far above and far below, finite."""
  for change in (1e9, 1e-9):
    actual = coefficient(toy, ratio=np.full((4, 2), change))
    np.testing.assert_allclose(actual, 0, atol=1e-6)


def test_masked_tokens_do_not_enter_the_product(toy):
  """Without the second token the weights of row 2 are phi(4) = 16 e^-9."""
  mask = np.array([[1.0, 0]] * 4)
  actual = coefficient(toy, mask_BT=mask)
  np.testing.assert_allclose(actual[2, 0], 16 * np.exp(-9), rtol=1e-5)
