"""T-PPO's token filter."""

import jax
import numpy as np

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext


def window(toy, extras):
  """Weights of two rows of four tokens."""
  traj = toy.trajectories(np.ones((2, 4)), group_size=1, extras=extras)
  return weights.CurrentWindow()(LossContext({}, traj, jax.random.key(0))).value


def test_tokens_of_earlier_windows_are_dropped(toy):
  """Row 0 began in this window, row 1 was continued at position 3."""
  actual = window(toy, {'window_start_B': np.array([0, 3])})
  np.testing.assert_array_equal(actual, [[1, 1, 1, 1], [0, 0, 0, 1]])


def test_every_token_is_used_once(toy):
  """E0: the windows [0, 3) and [3, 4) of a response add up to all tokens, the
  first of which is trained before the row has more."""
  before = np.array([[1, 1, 1, 0]])
  after = window(toy, {'window_start_B': np.array([3, 3])})[:1]
  np.testing.assert_array_equal(before + after, 1)


def test_one_window_is_ppo(toy):
  """E0: without the key, and from position 0, all weights are 1."""
  np.testing.assert_array_equal(window(toy, {}), 1)
  start = {'window_start_B': np.array([0, 0])}
  np.testing.assert_array_equal(window(toy, start), 1)
