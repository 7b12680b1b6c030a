"""Token rewards of a process model."""

import numpy as np

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext

SCORES = np.array([[0.9, -1.0, 0.4, 0.6, 0.2, 0.1]])
MASK = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]])  # the last is not a token


def evaluate(toy, reward=(0.0,), scores=SCORES, **fields):
  traj = toy.trajectories(
    MASK, group_size=1, extras={'step_score_BT': np.float32(scores)}
  )
  return shaping.StepScores(**fields)(
    CreditContext(np.float32(reward), traj)
  ).value


def test_by_hand(toy):
  """Steps of 0.9, 0.4, 0.6, 0.2 from 0.5: 0, -0.1, 0, -0.2, and 1/4 in four."""
  expected = [[0.0625, 0.0, -0.0375, 0.0625, -0.1375, 0.0]]
  np.testing.assert_allclose(evaluate(toy), expected, atol=1e-6)
  doubled = np.multiply(2.0, expected) + [[0, 0, 0, 0, 1, 0]]
  np.testing.assert_allclose(
    evaluate(toy, (1.0,), scale=2.0), doubled, atol=1e-6
  )


def test_products_by_hand(toy):
  """0.9, 0.36, 0.216, 0.0432 from 0.5: each step but the first takes some."""
  expected = [[0, 0, -0.14, -0.144, -0.1728, 0]]
  found = evaluate(toy, scheme='prod', bonus=0.0)
  np.testing.assert_allclose(found, expected, atol=1e-6)
  # Steps that are sure cost nothing in either scheme.
  sure = np.where(SCORES >= 0, 1.0, -1.0)
  for scheme in ('min', 'prod'):
    total = evaluate(toy, scores=sure, scheme=scheme).sum()
    np.testing.assert_allclose(total, 0.25, atol=1e-6)


def test_without_scale_the_reward_is_that_of_before(toy):
  """E0: on the last token."""
  np.testing.assert_array_equal(
    evaluate(toy, (3.0,), scale=0.0), [[0, 0, 0, 0, 3, 0]]
  )


def test_the_sum_knows_the_least_score_alone(toy):
  """In any order of the steps, min(start, least) - start + bonus."""
  for order in ([0, 1, 2, 3, 4, 5], [4, 1, 0, 2, 3, 5]):
    total = evaluate(toy, scores=SCORES[:, order]).sum()
    np.testing.assert_allclose(total, 0.2 - 0.5 + 0.25, atol=1e-6)
  none = evaluate(toy, scores=np.full_like(SCORES, -1.0))
  np.testing.assert_array_equal(none, 0.0)
