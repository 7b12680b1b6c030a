"""The entropy of the differential information distribution."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import LossContext

POLICY = np.array([0.5, 0.3, 0.2])
REFERENCE = np.array([0.2, 0.3, 0.5])
# Ten rows with exactly the frequencies of the policy.
DRAWN = np.repeat(np.arange(3), [5, 3, 2])


def measured(toy, policy, reference, order=DRAWN, **fields):
  """(entropy, effective samples) of one group of one-token rows."""
  logp = np.log(np.asarray(policy))[order, None]
  ref = np.log(np.asarray(reference))[order, None]
  traj = toy.trajectories(
    np.ones_like(logp),
    group_size=len(order),
    logp_behaviour_BT=logp,
    logp_ref_BT=ref,
    **fields,
  )
  out = jax.jit(pref.DifferentialInformation())(LossContext({}, traj))
  assert out.value == 0.0
  names = 'did_entropy', 'did_samples'
  return tuple(float(out.metrics[f'preference/{name}']) for name in names)


def test_by_hand(toy):
  """pi / ref = (2.5, 1, 0.4) / 3.9 = (.641026, .256410, .102564): H .867589.

  1 / ref is 5, 10 / 3 or 2, 39 in all: 39^2 / (5 * 25 + 100 / 3 + 2 * 4).
  """
  found = measured(toy, POLICY, REFERENCE)
  np.testing.assert_allclose(found, (0.867589, 1521 / 166.3333), rtol=1e-5)


def test_at_the_reference_it_is_uniform(toy):
  """log 3 of three responses, however likely they are."""
  entropy, _ = measured(toy, POLICY, POLICY)
  assert entropy == pytest.approx(np.log(3), rel=1e-6)


def test_order_data_and_dropped_rows_do_not_count(toy):
  """E1."""
  expected = measured(toy, POLICY, REFERENCE)
  order = np.append(DRAWN[::-1], [0, 1])
  extras = {'logged_B': np.eye(12)[-1]}
  found = measured(
    toy, POLICY, REFERENCE, order, weight_B=1.0 - np.eye(12)[-2], extras=extras
  )
  np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_small_probabilities_are_finite(toy):
  """Only ratios of 1 / ref count: e^-200 on all responses changes nothing."""
  tiny = REFERENCE.astype(np.float64) * np.exp(-200.0)
  found = measured(toy, POLICY, tiny)
  np.testing.assert_allclose(found, measured(toy, POLICY, REFERENCE), rtol=1e-4)


def test_labels_of_the_ideal_loser_are_those_of_the_information():
  """Losers of ref (ref / pi)^beta: q of (ref, loser) is q of (pi, ref)^beta.

  So the label probability of the first over the third response is the same by
  both, .714286, and DPO with that beta recovers pi.
  """
  beta, q = 0.5, POLICY / REFERENCE / (POLICY / REFERENCE).sum()
  loser = REFERENCE * (REFERENCE / POLICY) ** beta
  loser /= loser.sum()
  np.testing.assert_allclose(loser, [0.103932, 0.246496, 0.649573], rtol=1e-5)
  against = REFERENCE / loser
  wins = [x[0] / (x[0] + x[2]) for x in (against, q**beta)]
  np.testing.assert_allclose(wins, 0.714286, rtol=1e-5)
  h = np.log(POLICY / REFERENCE)
  link = pref.Sigmoid()(beta * h[0], beta * h[2], 0.0)
  np.testing.assert_allclose(np.exp(-link), wins[0], rtol=1e-5)
