"""Imitation of the best of a group."""

import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def evaluate(toy, values, valid=None, group_size=None, **fields):
  """The credit of rows with these advantages; one group without a size."""
  count = len(values)
  valid = np.ones(count) if valid is None else np.asarray(valid, float)
  traj = toy.trajectories(
    np.ones((count, 1)), group_size=group_size or count, valid_B=valid
  )
  values = np.asarray(values, np.float32)
  return credit.BestAdvantage(**fields)(CreditContext(values, traj)).value


def test_by_hand(toy):
  """The paper's three: .15 is kept at .1 and not at .2; a tie shares."""
  three = [0.02, 0.15, -0.1]
  np.testing.assert_array_equal(evaluate(toy, three), [0, 1, 0])
  np.testing.assert_array_equal(evaluate(toy, three, threshold=0.2), 0)
  found = evaluate(toy, [1, 0, 1, 0])
  np.testing.assert_array_equal(found, [0.5, 0, 0.5, 0])
  np.testing.assert_array_equal(evaluate(toy, [0.1, 0.1]), 0)


def test_rows_that_do_not_count(toy):
  """An invalid row is not best; none left is not an error."""
  found = evaluate(toy, [9, 1, 0], valid=[0, 1, 1])
  np.testing.assert_array_equal(found, [0, 1, 0])
  np.testing.assert_array_equal(evaluate(toy, [1, 0], valid=[0, 0]), 0)


def test_of_one_sample_it_is_behaviour_cloning(toy):
  """E0: below every advantage; else the good ones are cloned."""
  values = [0.3, -0.4, 0.0]
  found = evaluate(toy, values, group_size=1, threshold=-1.0)
  np.testing.assert_array_equal(found, 1)
  np.testing.assert_array_equal(evaluate(toy, values, group_size=1), [1, 0, 0])


@pytest.mark.parametrize('rewards', [[1, 0, 0, 0], [1, 1, 0, 1]])
def test_behind_group_means_it_is_expert_iteration(toy, rewards):
  """E0: G times it are the advantages 1 / p on right samples."""
  rewards = np.asarray(rewards, np.float32)
  traj = toy.trajectories(np.ones((4, 1)), group_size=4, reward_B=rewards)
  centred = credit.GroupCenter()(CreditContext(rewards, traj)).value
  expert = credit.RewardAtLeast()(CreditContext(rewards, traj)).value
  np.testing.assert_allclose(4 * evaluate(toy, centred), expert)
