"""ASPO's bias for early first calls, delta -2 and kappa .7."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def biased(toy, adv, call, length, reward, valid=None, **fields):
  """One group."""
  B = len(adv)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    reward_B=np.asarray(reward, np.float32),
    length_B=np.asarray(length, np.int32),
    valid_B=np.ones(B) if valid is None else np.asarray(valid),
    extras={'first_call_B': np.asarray(call)},
  )
  return credit.FirstCallBias(**fields)(
    CreditContext(jnp.asarray(adv), traj)
  ).value


def test_by_hand(toy):
  """p = 100, 300 and mean L 500: -2 * (-100) / 500 = .4, cut at .7 * .5."""
  adv, call, length = [0.5, 0.5], [100, 300], [400, 600]
  np.testing.assert_allclose(
    biased(toy, adv, call, length, [1, 1]), [0.85, 0.15], rtol=1e-6
  )
  np.testing.assert_allclose(
    biased(toy, adv, call, length, [1, 1], limit=0.9), [0.9, 0.1], rtol=1e-6
  )
  # A call at the very start counts: p = 0, 200 have the same differences.
  start = biased(toy, adv, [0, 200], length, [1, 1])
  np.testing.assert_allclose(start, [0.85, 0.15], rtol=1e-6)
  below = biased(toy, [-0.5, -0.5], call, length, [1, 1])  # bound .7 |A|
  np.testing.assert_allclose(below, [-0.15, -0.85], rtol=1e-6)


def test_only_right_rows_with_a_call_move(toy):
  """Rows 2 (wrong) and 3 (no call) are neither changed nor counted."""
  adv = [0.5, 0.5, -0.5, 0.5]
  actual = biased(
    toy, adv, [100, 300, 900, -1], [400, 600, 50, 50], [1, 1, 0, 1]
  )
  np.testing.assert_allclose(actual, [0.85, 0.15, -0.5, 0.5], rtol=1e-6)
  invalid = biased(
    toy,
    adv,
    [100, 300, 900, 50],
    [400, 600, 50, 50],
    [1, 1, 0, 1],
    [1, 1, 1, 0],
  )
  np.testing.assert_allclose(invalid, actual, rtol=1e-6)


def test_reductions(toy):
  """E0: kappa 0, a single eligible row, or zero advantages change nothing."""
  adv, call, length = [0.5, 0.25], [3, 30], [40, 60]
  off = biased(toy, adv, call, length, [1, 1], limit=0.0)
  np.testing.assert_array_equal(off, adv)
  one = biased(toy, adv, call, length, [1, 0])
  np.testing.assert_array_equal(one, adv)
  agree = biased(toy, [0.0, 0.0], call, length, [1, 1])
  np.testing.assert_array_equal(agree, 0)


def test_signs_stay_and_unclipped_biases_cancel(toy):
  """kappa < 1 keeps A > 0; without clipping the sum is unchanged. E1."""
  call = [1, 500, 900]
  adv = biased(toy, [0.5] * 3, call, [10, 10, 10], [1, 1, 1])
  assert (adv > 0).all()
  free = biased(toy, [0.5] * 3, call, [9000] * 3, [1, 1, 1], limit=50.0)
  np.testing.assert_allclose(free.sum(), 1.5, rtol=1e-5)
