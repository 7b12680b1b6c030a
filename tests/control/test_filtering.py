"""AD + LHF: utilities of learning histories."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import filtering

RETURNS = np.array([[0.0, 2, 4, 6, 8], [0, 8, 2, 8, 0], [1, 1, 1, 1, 1]])


def test_by_hand():
  """E1: the three histories of the paper's formula, best return 10."""
  found = filtering.utility(RETURNS, 10.0)
  expected = [[1.6, 0.88, 1.05], [0.6, 0.58, 0.05], [1.0, 0.3, 1.0]]
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  keep = filtering.keep_probabilities(found[0])
  np.testing.assert_allclose(keep, [1, 0, 0.236111], rtol=1e-5, atol=1e-7)
  soft = filtering.keep_probabilities(found[0], temperature=0.25)
  np.testing.assert_allclose(soft, [1, 0, 0.057920], rtol=1e-4, atol=1e-7)


def test_without_stability_only_improvement_counts():
  """E0."""
  found, improved, _ = filtering.utility(RETURNS, 10.0, stability=0.0)
  np.testing.assert_array_equal(found, improved)


@pytest.mark.parametrize('factor', [0.1, 7.0])
def test_units_of_returns_do_not_count(factor):
  """E1: returns and the best one are scaled together."""
  np.testing.assert_allclose(
    filtering.utility(factor * RETURNS, factor * 10.0)[0],
    filtering.utility(RETURNS, 10.0)[0],
    rtol=1e-5,
  )


def test_equal_utilities_are_all_kept():
  """E0: 0 / 0 counts as 1, also where no return is positive."""
  np.testing.assert_array_equal(
    filtering.keep_probabilities(jnp.full(4, 0.3)), 1.0
  )
  flat = filtering.utility(np.zeros((3, 5)), 0.0)[0]
  np.testing.assert_array_equal(filtering.keep_probabilities(flat), 1.0)
