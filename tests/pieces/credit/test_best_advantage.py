"""Imitation of the best of a group."""

import numpy as np
import pytest

from rl_jax.pieces import credit


def evaluate(toy, rewards, valid=None, **fields):
  """The credit of one group."""
  count = len(rewards)
  valid = np.ones(count) if valid is None else np.asarray(valid, float)
  traj = toy.trajectories(np.ones((count, 1)), group_size=count, valid_B=valid)
  rewards = np.asarray(rewards, np.float32)
  return credit.BestAdvantage(**fields)(rewards, traj)


def test_by_hand(toy):
  """The paper's three: .15 lies .127 above the mean; a tie shares."""
  three = [0.02, 0.15, -0.1]
  np.testing.assert_array_equal(evaluate(toy, three), [0, 1, 0])
  np.testing.assert_array_equal(evaluate(toy, three, threshold=0.2), 0)
  found = evaluate(toy, [1, 0, 1, 0])
  np.testing.assert_array_equal(found, [0.5, 0, 0.5, 0])
  np.testing.assert_array_equal(evaluate(toy, [1, 1]), 0)


def test_rows_that_do_not_count(toy):
  """An invalid row is neither best nor in the mean; none left is no error."""
  found = evaluate(toy, [9, 1, 0], valid=[0, 1, 1])
  np.testing.assert_array_equal(found, [0, 1, 0])
  np.testing.assert_array_equal(evaluate(toy, [1, 0], valid=[0, 0]), 0)


@pytest.mark.parametrize('rewards', [[1, 0, 0, 0], [1, 1, 0, 1]])
def test_with_right_and_wrong_it_is_expert_iteration(toy, rewards):
  """E0: G times it are the advantages 1 / p on right samples."""
  rewards = np.asarray(rewards, np.float32)
  traj = toy.trajectories(np.ones((4, 1)), group_size=4, reward_B=rewards)
  expert = credit.RewardAtLeast()(rewards, traj)
  np.testing.assert_allclose(4 * evaluate(toy, rewards), expert)


def test_a_shift_changes_nothing(toy):
  """E1: rewards of a prompt are compared with each other alone."""
  rewards = np.array([0.5, 0.0, 0.25])
  found = evaluate(toy, rewards + 2)
  np.testing.assert_array_equal(found, evaluate(toy, rewards))
