"""OTB on three rows of up to three tokens of a vocabulary of two."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

PROB = np.array([[0.5, 0.8, 0.5], [0.2, 0.5, 0.5], [0.8, 0.2, 0.5]])
MASK = np.array([[1.0, 1, 0], [1, 1, 0], [1, 1, 1]])
REWARD = jnp.array([1.0, 0.0, 1.0])
PIECE = credit.OptimalTokenBaseline()


def rows(toy, prob=PROB, mask=MASK, group_size=3, **fields):
  """One group; p is the probability of a token, 1 - p that of the other."""
  return toy.trajectories(
    mask,
    group_size=group_size,
    logp_old_BT=np.log(prob),
    extras={'collision': np.log(prob**2 + (1 - prob) ** 2)},
    **fields,
  )


def test_by_hand(toy):
  """1 - 2 p + p^2 + (1 - p)^2 is .5 at p .5, 1.28 at .2 and .08 at .8: W = .5,
  .58; 1.28, 1.78; .08, 1.36. b = .58 / 1.86 = .311828, then 1.94 / 3.72 =
  .521505; 0 at the third token, where one row is left."""
  expected = [
    [0.688172, 0.478495, 0.0],
    [-0.311828, -0.521505, 0.0],
    [0.688172, 0.478495, 1.0],
  ]
  np.testing.assert_allclose(
    PIECE(CreditContext(REWARD, rows(toy))).value, expected, rtol=1e-5
  )


def test_equal_norms_are_group_centring(toy):
  """E1: of rows that have all positions, with returns of tokens as well."""
  traj = rows(toy, np.full((3, 3), 0.3), np.ones((3, 3)))
  reward = jnp.array([0.3, -1.0, 2.0])
  expected = np.tile(
    credit.GroupCenter()(CreditContext(reward, traj)).value[:, None], (1, 3)
  )
  np.testing.assert_allclose(
    PIECE(CreditContext(reward, traj)).value, expected, rtol=1e-5
  )
  returns = credit.DiscountedReturn()(CreditContext(reward, traj)).value
  np.testing.assert_allclose(
    PIECE(CreditContext(returns, traj)).value, expected, rtol=1e-5
  )


def test_returns_to_go_have_their_own_baselines(toy):
  """Rewards of tokens 1, 2 and 0, 4: returns 3, 2 and 4, 4; equal norms."""
  traj = rows(toy, np.full((2, 2), 0.3), np.ones((2, 2)), 2)
  returns = credit.DiscountedReturn()(
    CreditContext(jnp.array([[1.0, 2], [0, 4]]), traj)
  ).value
  expected = [[-0.5, -1.0], [0.5, 1.0]]
  np.testing.assert_allclose(
    PIECE(CreditContext(returns, traj)).value, expected, rtol=1e-5
  )


def test_a_constant_drops_out(toy):
  """E1 where rows can be compared, and equal returns give exactly 0 there."""
  shifted = PIECE(CreditContext(REWARD + 10.0, rows(toy))).value
  np.testing.assert_allclose(
    shifted[:, :2],
    PIECE(CreditContext(REWARD, rows(toy))).value[:, :2],
    rtol=1e-5,
  )
  for reward in (0.1, 0.7):
    equal = PIECE(CreditContext(jnp.full(3, reward), rows(toy))).value
    np.testing.assert_array_equal(equal[:, :2], 0.0)
    np.testing.assert_allclose(equal[2, 2], reward)


def test_other_tokens_neither_weigh_nor_have_credit(toy):
  """The first token of row 0 is not a token of the policy: W = .08 at the
  second, b = (.08 + 1.36) / (.08 + 1.78 + 1.36) = .447205; b = .08 / 1.36
  before.
  """
  mask = MASK.copy()
  mask[0, 0] = 0.0
  found = PIECE(CreditContext(REWARD, rows(toy, mask=mask))).value
  np.testing.assert_allclose(
    found[:, 1], 1 - 0.447205 - np.array([0, 1, 0]), rtol=1e-5
  )
  np.testing.assert_allclose(found[:, 0], [0.0, -0.058824, 0.941176], rtol=1e-5)


def test_invalid_rows_do_not_count(toy):
  """E0: whatever their returns are."""
  traj = rows(toy, valid_B=np.array([1.0, 1, 0]))
  found = PIECE(CreditContext(REWARD, traj)).value
  other = PIECE(CreditContext(jnp.array([1.0, 0.0, 90.0]), traj)).value
  np.testing.assert_array_equal(found, other)
  assert (found[2] == 0).all() and (found[:2, :2] != 0).all()


def test_nothing_to_compare_is_zero(toy):
  """One valid row, groups of one, none at all, no trained token."""
  for fields in (
    {'valid_B': np.array([0.0, 1, 0])},
    {'group_size': 1},
    {'valid_B': np.zeros(3)},
    {'mask': np.zeros((3, 3))},
  ):
    found = PIECE(CreditContext(REWARD + 1.0, rows(toy, **fields))).value
    np.testing.assert_array_equal(found, 0.0)


def test_sure_tokens_stay_finite(toy):
  """Gradients of 0 weigh nothing: the baseline is that of the other rows."""
  prob = np.array([[1.0], [0.5], [0.5]])
  found = PIECE(
    CreditContext(jnp.array([1.0, 0, 1]), rows(toy, prob, np.ones((3, 1))))
  ).value
  np.testing.assert_allclose(found[:, 0], [0.5, -0.5, 0.5], rtol=1e-5)
  assert np.isfinite(
    PIECE(
      CreditContext(REWARD, rows(toy, np.ones((3, 1)), np.ones((3, 1))))
    ).value
  ).all()
