"""What pieces read from outside."""

import numpy as np
import pytest

from rl_jax.pieces import row_inputs


def test_a_missing_key_is_named_and_explained(toy):
  """The error says what to fill in, and under which component name."""
  traj = toy.trajectories(np.ones((2, 1)), group_size=2)
  with pytest.raises(ValueError, match="'cluster_id_B'.*final answer") as error:
    row_inputs.read(traj, 'cluster_id_B')
  assert "component 'cluster_id'" in str(error.value)
  with pytest.raises(ValueError, match="extras\\['hidden'\\] is missing"):
    row_inputs.read(traj, 'hidden')


def test_a_reward_component_serves_a_row_value(toy):
  """extras win over the component of the same name."""
  component = {'cluster_id': np.array([4.0, 5.0])}
  traj = toy.trajectories(np.ones((2, 1)), group_size=2, rewards=component)
  np.testing.assert_array_equal(row_inputs.read(traj, 'cluster_id_B'), [4, 5])
  traj = traj.replace(extras={'cluster_id_B': np.array([1, 2])})
  np.testing.assert_array_equal(row_inputs.read(traj, 'cluster_id_B'), [1, 2])


def test_right_rows_are_those_of_the_outcome(toy):
  """A bonus in the reward does not make a row right; invalid rows are not."""
  traj = toy.trajectories(
    np.ones((3, 1)),
    group_size=3,
    reward_B=np.array([0.6, 1.0, 1.0]),
    valid_B=np.array([1.0, 1, 0]),
  )
  right_B = row_inputs.right_B(traj, 0.5)
  np.testing.assert_array_equal(right_B, [True, True, False])
  outcome = {'outcome': np.array([0.0, 1, 1]), 'format': np.array([0.6, 0, 0])}
  right_B = row_inputs.right_B(traj.replace(rewards=outcome), 0.5)
  np.testing.assert_array_equal(right_B, [False, True, False])
