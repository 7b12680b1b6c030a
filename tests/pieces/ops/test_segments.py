"""Turns and segments inside a row with environment tokens."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops import segments

MASK = np.array([[1, 1, 0, 0, 1, 1, 1, 0]])


def test_turns_are_runs_of_trained_tokens(toy):
  """Two turns: columns 0-1 and 4-6."""
  traj = toy.trajectories(MASK, group_size=1)
  start = segments.segment_starts(traj, 'turns')
  np.testing.assert_array_equal(start, [[1, 0, 0, 0, 1, 0, 0, 0]])


def test_given_starts_and_the_first_token(toy):
  """A start on a masked token (column 3) is none; column 0 always is."""
  given = np.array([[0, 1, 0, 1, 0, 0, 1, 1]])
  traj = toy.trajectories(
    MASK, group_size=1, extras={'segment_start_BT': given}
  )
  start = segments.segment_starts(traj, 'extras')
  np.testing.assert_array_equal(start, [[1, 1, 0, 0, 0, 0, 1, 0]])


def test_means_per_segment(toy):
  """(1 + 2) / 2 and (5 + 6 + 7) / 3; there is no third segment."""
  traj = toy.trajectories(MASK, group_size=1)
  start = segments.segment_starts(traj, 'turns')
  x = jnp.arange(1.0, 9.0)[None]
  mean, tokens, index = segments.segment_means(x, start, traj.mask_BT)
  np.testing.assert_allclose(mean, [[1.5, 6, 0, 0, 0, 0, 0, 0]])
  np.testing.assert_array_equal(tokens, [[2, 3, 0, 0, 0, 0, 0, 0]])
  np.testing.assert_array_equal(index, [[0, 0, 0, 0, 1, 1, 1, 1]])
