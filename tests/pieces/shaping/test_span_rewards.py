"""Rewards of spans."""

import numpy as np
import pytest

from rl_jax.pieces import credit, row_inputs, shaping
from rl_jax.pieces.roles import CreditContext

SCORES = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 1.0]])
MASK = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])


def rows(toy, scores=SCORES):
  extras = {'span_score_BT': scores}
  return toy.trajectories(
    MASK, group_size=2, reward_B=np.array([0.5, 2.0]), extras=extras
  )


def shaped(traj, **fields):
  piece = shaping.SpanRewards(**fields)
  return piece(CreditContext(traj.reward_B, traj)).value


def test_by_hand(toy):
  """Scores of trained tokens, and half of the reward at the end."""
  expected = [[2, -2, 0.25], [2, 3, 0]]
  found = shaped(rows(toy), coef=2.0, outcome=0.5)
  np.testing.assert_array_equal(found, expected)


def test_without_spans_it_is_the_reward(toy):
  """E0: on the last trained token, as PPO has it."""
  expected = [[0, 0, 0.5], [0, 2.0, 0]]
  np.testing.assert_array_equal(
    shaped(rows(toy), coef=0.0, outcome=1.0), expected
  )


def test_good_tokens_only_are_the_tokens_that_are_left(toy):
  """E1: returns of +1 everywhere, lambda and gamma 1, values 0."""
  traj = rows(toy, np.ones((2, 3)))
  traj = traj.replace(values_BT=np.zeros((2, 3)))
  gae = credit.GAE(gamma=1.0, lam=1.0)
  found = gae(CreditContext(shaped(traj), traj)).value
  np.testing.assert_allclose(found * MASK, [[3, 2, 1], [2, 1, 0]])


def test_scores_of_padding_change_nothing(toy):
  """E0."""
  other = SCORES.copy()
  other[1, 2] = -7.0
  np.testing.assert_array_equal(shaped(rows(toy)), shaped(rows(toy, other)))


def test_a_missing_critique_is_named(toy):
  traj = rows(toy).replace(extras={})
  with pytest.raises(row_inputs.MissingInputError, match='span_score_BT'):
    shaped(traj)
