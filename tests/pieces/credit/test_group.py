"""Group baselines and scales on R = [1, 0, 0, 0]."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def group(toy, valid=(1, 1, 1, 1), groups=1):
  """A record of groups of four rows with one token each."""
  B = 4 * groups
  return toy.trajectories(
    np.ones((B, 1)),
    group_size=4,
    valid_B=np.tile(np.array(valid, np.float32), groups),
  )


R = jnp.array([1.0, 0.0, 0.0, 0.0])
INVALID_LAST = (1, 1, 1, 0)
TWO_VALID = (1, 1, 0, 0)


def test_center(toy):
  """Mean 1/4 (Dr. GRPO); without the last row 1/3."""
  center = credit.GroupCenter()
  np.testing.assert_allclose(
    center(CreditContext(R, group(toy))).value, [0.75, -0.25, -0.25, -0.25]
  )
  np.testing.assert_allclose(
    center(CreditContext(R, group(toy, INVALID_LAST))).value,
    [2 / 3, -1 / 3, -1 / 3, 0],
    rtol=1e-6,
  )
  np.testing.assert_allclose(
    center(CreditContext(R, group(toy, TWO_VALID))).value, [0.5, -0.5, 0, 0]
  )


def test_leave_one_out(toy):
  """1 - 0, and 0 - 1/3; with three valid rows 0 - 1/2."""
  rloo = credit.LeaveOneOut()
  np.testing.assert_allclose(
    rloo(CreditContext(R, group(toy))).value,
    [1, -1 / 3, -1 / 3, -1 / 3],
    rtol=1e-6,
  )
  np.testing.assert_allclose(
    rloo(CreditContext(R, group(toy, INVALID_LAST))).value,
    [1, -0.5, -0.5, 0],
    rtol=1e-6,
  )
  np.testing.assert_allclose(
    rloo(CreditContext(R, group(toy, TWO_VALID))).value, [1, -1, 0, 0]
  )


@pytest.mark.parametrize(
  'ddof, expected',
  # Sum of squares 3/4: std sqrt(3/4 / 3) = 1/2, or sqrt(3/4 / 4) = .433013.
  [(1, [1.5, -0.5, -0.5, -0.5]), (0, [1.732051, -0.57735, -0.57735, -0.57735])],
)
def test_scale(toy, ddof, expected):
  """GRPO's advantage after centring; rtol covers eps = 1e-6."""
  traj = group(toy)
  scale = credit.GroupScale(ddof=ddof)
  actual = scale(
    CreditContext(credit.GroupCenter()(CreditContext(R, traj)).value, traj)
  ).value
  np.testing.assert_allclose(actual, expected, rtol=5e-6)


def test_scale_divides_by_std_plus_eps(toy):
  """std 1/2 and eps 1/2 leave the centred reward unchanged."""
  centered = jnp.array([0.75, -0.25, -0.25, -0.25])
  scale = credit.GroupScale(eps=0.5)
  np.testing.assert_allclose(
    scale(CreditContext(centered, group(toy))).value, centered, rtol=1e-6
  )


def test_equal_rewards_have_exactly_zero_advantage(toy):
  """E0, for rewards whose float32 mean is inexact."""
  traj = group(toy)
  for value in (0.1, 1 / 3, 1e6 + 0.3):
    centered = credit.GroupCenter()(
      CreditContext(jnp.full(4, value), traj)
    ).value
    np.testing.assert_array_equal(
      credit.GroupScale()(CreditContext(centered, traj)).value, 0
    )
    np.testing.assert_array_equal(
      credit.LeaveOneOut()(CreditContext(jnp.full(4, value), traj)).value, 0
    )


def test_a_single_valid_row_has_no_advantage(toy):
  """There is nothing to compare it with."""
  traj = group(toy, (0, 1, 0, 0))
  for piece in (credit.GroupCenter(), credit.LeaveOneOut()):
    np.testing.assert_array_equal(
      piece(CreditContext(5 * R + 1, traj)).value, 0
    )


def test_invariances(toy):
  """A constant per prompt drops out; scaling also removes a factor. E1."""
  traj = group(toy, groups=2)
  reward = jnp.array([1.0, 0.5, 0.0, 0.0, 3.0, 1.0, 2.0, 2.0])
  shift = jnp.repeat(jnp.array([10.0, -4.0]), 4)
  for piece in (credit.GroupCenter(), credit.LeaveOneOut()):
    np.testing.assert_allclose(
      piece(CreditContext(reward + shift, traj)).value,
      piece(CreditContext(reward, traj)).value,
      rtol=1e-5,
      atol=1e-6,
    )
  center, scale = credit.GroupCenter(), credit.GroupScale(eps=1e-9)
  np.testing.assert_allclose(
    scale(
      CreditContext(center(CreditContext(7 * reward, traj)).value, traj)
    ).value,
    scale(CreditContext(center(CreditContext(reward, traj)).value, traj)).value,
    rtol=1e-5,
  )


def test_rloo_is_centering_times_g_over_g_minus_one(toy):
  """E1, with G = 4."""
  traj = group(toy)
  reward = jnp.array([0.3, -1.0, 2.0, 0.1])
  np.testing.assert_allclose(
    credit.LeaveOneOut()(CreditContext(reward, traj)).value,
    4 / 3 * credit.GroupCenter()(CreditContext(reward, traj)).value,
    rtol=1e-5,
  )


def test_token_rewards_are_refused(toy):
  """Centring after broadcasting would mix padding in."""
  for piece in (
    credit.GroupCenter(),
    credit.GroupScale(),
    credit.LeaveOneOut(),
  ):
    with pytest.raises(AssertionError):
      piece(CreditContext(jnp.ones((4, 1)), group(toy)))
