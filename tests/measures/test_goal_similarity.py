"""Cosines with a goal, and what is discarded by them."""

import jax
import numpy as np
import pytest

from rl_jax.learning.hidden_states import Forward, states_before
from rl_jax.measures import goal_similarity
from rl_jax.measures.reward_heuristic import prompts

MASK = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)
STATE = np.array(
  [
    [[1.0, 0.0], [0.0, 0.0], [3.0, 4.0], [9.0, 9.0]],
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0], [-3.0, 4.0]],
  ]
)


def test_goal_and_cosines_by_hand():
  """Last states (3, 4) and (-3, 4): the goal is (0, 4)."""
  goal = goal_similarity.goal(STATE, MASK)
  np.testing.assert_allclose(goal, [0.0, 4.0])
  found = goal_similarity.cosines(STATE, goal)
  half = 1 / np.sqrt(2)
  expected = [[0, 0, 0.8, half], [1, half, 0, 0.8]]
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  with pytest.raises(ValueError, match='no token'):
    goal_similarity.goal(STATE, MASK & False)


def test_the_length_of_states_changes_nothing():
  """E1."""
  goal = goal_similarity.goal(STATE, MASK)
  found = goal_similarity.cosines(STATE, goal)
  scaled = goal_similarity.cosines(
    STATE * np.array([0.1, 7, 3, 2])[:, None], 5 * goal
  )
  np.testing.assert_allclose(scaled, found, rtol=1e-6)


def test_last_cosines_by_hand():
  """The third and the fourth state count; a row of padding has 0."""
  goal = goal_similarity.goal(STATE, MASK)
  cosine = goal_similarity.cosines(STATE, goal)
  found = goal_similarity.last_cosine(cosine, MASK)
  np.testing.assert_allclose(found, [0.8, 0.8], rtol=1e-6)
  mask = MASK & np.array([[False], [True]])
  found = goal_similarity.last_cosine(cosine, mask)
  np.testing.assert_allclose(found, [0.0, 0.8], rtol=1e-6)


def test_a_search_reads_the_cosine_of_the_last_state(tiny):
  """E1: what `last_cosine` reads; tokens after the length do not count, nor
  does the size of the goal.
  """
  traj, params = tiny.rollout(group_size=1), tiny.params()
  states = goal_similarity.token_states(tiny.CFG, params, traj)
  goal = np.arange(1.0, 1.0 + tiny.CFG.width) - 4.0
  expected = goal_similarity.last_cosine(
    goal_similarity.cosines(np.asarray(states['state']), goal),
    np.asarray(states['mask']),
  )
  assert np.ptp(expected) > 0.01
  other_BT = np.where(traj.mask_BT > 0, traj.response_BT, 1)
  for size in (1.0, 7.0):
    heuristic = jax.jit(
      goal_similarity.goal_heuristic(tiny.CFG, params, size * goal)
    )
    for response_BT in (traj.response_BT, other_BT):
      found = heuristic(prompts(traj), response_BT, traj.length_B)
      np.testing.assert_allclose(found, expected, atol=1e-5)
  with pytest.raises(ValueError, match='the goal is 0'):
    goal_similarity.goal_heuristic(tiny.CFG, params, 0.0 * goal)


COSINE = np.array([0.9, 0.1, 0.2, 0.9, 0.8, 0.5, 0.7, 0.3, 0.6, 0.9])[None]
ROW = np.ones((1, 10), bool)


def test_discarding_by_hand():
  """Tokens before the fifth never count; with half of 14 tokens the seventh."""
  assert goal_similarity.lowest(COSINE, ROW, 0.0) == [0.3]
  assert goal_similarity.lowest(COSINE, ROW, 0.8) == [0.6]
  for threshold, tokens in ((0.3, 10), (0.31, 7), (0.6, 5), (0.0, 10)):
    found = goal_similarity.written(COSINE, ROW, 0.0, threshold)
    assert found == [tokens]
    stays = goal_similarity.lowest(COSINE, ROW, 0.0) >= threshold
    assert stays == (tokens == 10)


def test_a_brief_response_is_never_discarded():
  """Padding has no cosine."""
  mask = np.arange(10)[None] < 5
  assert goal_similarity.lowest(COSINE, mask, 0.0) == [np.inf]
  assert goal_similarity.written(COSINE, mask, 0.0, 2.0) == [5]


def test_threshold_keeps_what_it_says():
  values = np.arange(10.0)[::-1]
  for kept, expected in ((1.0, 0.0), (0.9, 1.0), (0.5, 5.0), (0.0, 9.0)):
    found = goal_similarity.threshold_that_keeps(values, kept)
    assert found == expected
    assert (values >= found).mean() >= kept
  with pytest.raises(ValueError, match='kept = 2'):
    goal_similarity.threshold_that_keeps(values, 2.0)


def test_auroc_by_hand():
  """Right 3, 1 against wrong 2, 1: above in 2 of 4 pairs, equal in one: 5/8."""
  right = [True, False, True, False]
  assert goal_similarity.auroc(np.array([3.0, 2.0, 1.0, 1.0]), right) == 0.625
  turned = goal_similarity.auroc(-np.array([3.0, 2.0, 1.0, 1.0]), right)
  assert turned == pytest.approx(0.375, rel=1e-6)
  assert np.isnan(goal_similarity.auroc(np.ones(2), [True, True]))


def test_states_are_those_that_the_loss_trains(tiny):
  """E0."""
  traj, params = tiny.rollout(), tiny.params()
  found = goal_similarity.token_states(tiny.CFG, params, traj)
  expected = states_before(Forward(model=tiny.CFG), params, traj)
  np.testing.assert_array_equal(found['state'], expected)
  np.testing.assert_array_equal(found['mask'], traj.mask_BT > 0)
