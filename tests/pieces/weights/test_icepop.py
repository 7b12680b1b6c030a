"""IcePop's two-sided mask by hand."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import weights

RATIO = np.array([[0.45, 0.55, 1.0, 4.9, 5.1]])
OLD = np.full((1, 5), -1.0)


def evaluate(toy, piece, ratio=RATIO, **fields):
  """Weights where pi_old / pi_behaviour is `ratio`."""
  traj = toy.trajectories(
    fields.pop('mask_BT', np.ones(ratio.shape)),
    group_size=1,
    logp_old_BT=OLD,
    logp_behaviour_BT=OLD - np.log(ratio),
  )
  return piece({}, traj, jax.random.key(0))


def test_by_hand(toy):
  """Inside [.5, 5] the ratio itself, outside 0."""
  weight, metrics = evaluate(toy, weights.IcePop())
  np.testing.assert_allclose(weight, [[0, 0.55, 1, 4.9, 0]], rtol=1e-5)
  np.testing.assert_array_equal(
    metrics['policy/dropped_fraction'], [[1, 0, 0, 0, 1]]
  )


def test_a_wide_interval_is_plain_importance_sampling(toy):
  """E1: nothing is dropped or cut."""
  weight, _ = evaluate(toy, weights.IcePop(low=0.0, high=100.0))
  np.testing.assert_allclose(weight, RATIO, rtol=1e-5)


def test_no_mismatch_is_no_weight(toy):
  """E0, also with the interval [1, 1]; masked tokens weigh 0."""
  mask = np.array([[1.0, 1, 0, 1, 1]])
  piece = weights.IcePop(low=1.0, high=1.0)
  weight, _ = evaluate(toy, piece, np.ones((1, 5)), mask_BT=mask)
  np.testing.assert_array_equal(weight, mask)


def test_fields_are_checked():
  """The interval must hold 1."""
  with pytest.raises(ValueError, match='IcePop.low = 1.5'):
    weights.IcePop(low=1.5)
  with pytest.raises(ValueError, match='IcePop.high = 0.5'):
    weights.IcePop(high=0.5)
