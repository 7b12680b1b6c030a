"""Row masks by geometric mean, by hand."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import weights

# Geometric means 2, 6, sqrt(.24) = .49 and sqrt(.3) = .548.
RATIO = np.array([[8.0, 0.5], [6.0, 6.0], [0.4, 0.6], [0.5, 0.6]])
OLD = np.full((4, 2), -1.0)


def evaluate(toy, piece, ratio=RATIO, output=0, **fields):
  """Weights where pi_old / pi_behaviour is `ratio`."""
  traj = toy.trajectories(
    fields.pop('mask_BT', np.ones(ratio.shape)),
    group_size=4,
    logp_old_BT=OLD,
    logp_behaviour_BT=OLD - np.log(ratio),
  )
  return piece({}, traj, jax.random.key(0))[output]


def test_by_hand(toy):
  """Kept rows have their raw token weights, also beyond the interval."""
  expected = [[8, 0.5], [0, 0], [0, 0], [0.5, 0.6]]
  actual = evaluate(toy, weights.SequenceMask())
  np.testing.assert_allclose(actual, expected, rtol=1e-5)
  metrics = evaluate(toy, weights.SequenceMask(), output=1)
  dropped = metrics['policy/dropped_fraction']
  np.testing.assert_array_equal(dropped, [[0, 0], [1, 1], [1, 1], [0, 0]])


def test_masked_tokens_do_not_enter_the_mean(toy):
  """Row 0 without its second token has mean 8 and is dropped."""
  mask = np.array([[1.0, 0], [1, 1], [1, 1], [1, 1]])
  actual = evaluate(toy, weights.SequenceMask(), mask_BT=mask)
  np.testing.assert_array_equal(actual[0], 0)


def test_the_order_of_tokens_does_not_matter(toy):
  """E1: reversed rows have reversed weights."""
  piece = weights.SequenceMask()
  np.testing.assert_allclose(
    evaluate(toy, piece, RATIO[:, ::-1]), evaluate(toy, piece)[:, ::-1]
  )


def test_no_mismatch_is_no_weight(toy):
  """E0, with the interval [1, 1]."""
  piece = weights.SequenceMask(low=1.0, high=1.0)
  np.testing.assert_array_equal(evaluate(toy, piece, np.ones((4, 2))), 1)


def test_fields_are_checked():
  """The interval must hold 1."""
  with pytest.raises(ValueError, match='SequenceMask.high = 0.9'):
    weights.SequenceMask(high=0.9)
