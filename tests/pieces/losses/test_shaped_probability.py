"""A shaped probability in place of the ratio of refined rows, by hand."""

import numpy as np
import pytest

from rl_jax.pieces import losses

OLD = np.log(np.full((2, 2), 0.5))
# The second row is a refinement.
FOREIGN = {'extras': {'foreign_B': np.array([0.0, 1.0], np.float32)}}


def coefficient(toy, prob, adv=1.0, gamma=0.1, **fields):
  """-dl/dlogp of rows of two tokens."""
  return toy.coefficient(
    losses.ShapedProbability(gamma=gamma),
    np.log(np.asarray(prob, float)),
    advantages_BT=np.full((2, 2), adv),
    **{'logp_old_BT': OLD, **fields},
  )


def test_by_hand(toy):
  """Ratios .5 and 1.8 without a clip; gamma p / (p + gamma)^2 of (.01, .1)."""
  found = coefficient(toy, [[0.25, 0.9], [0.01, 0.1]], **FOREIGN)
  np.testing.assert_allclose(found, [[0.5, 1.8], [0.08264, 0.25]], rtol=1e-3)


@pytest.mark.parametrize(('prob', 'expected'), [(0.5, 0.13889), (1.0, 0.08264)])
def test_more_of_the_shape(toy, prob, expected):
  found = coefficient(toy, np.full((2, 2), prob), **FOREIGN)
  np.testing.assert_allclose(found[1], expected, rtol=1e-3)


def test_without_refinements_it_is_the_policy_gradient(toy):
  """E1: on policy all coefficients are the advantage."""
  found = coefficient(toy, np.full((2, 2), 0.5), adv=2.0)
  np.testing.assert_allclose(found, 2.0, rtol=1e-5)


def test_a_small_gamma_teaches_nothing(toy):
  found = coefficient(toy, np.full((2, 2), 0.5), gamma=1e-7, **FOREIGN)
  np.testing.assert_allclose(found[1], 0.0, atol=1e-6)


def test_old_probabilities_of_refinements_do_not_count(toy):
  """E0."""
  prob = [[0.25, 0.9], [0.01, 0.1]]
  other = OLD - np.array([[0.0], [2.0]])
  np.testing.assert_array_equal(
    coefficient(toy, prob, **FOREIGN),
    coefficient(toy, prob, **FOREIGN, logp_old_BT=other),
  )
