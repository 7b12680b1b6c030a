"""Pieces of whole groups, and groups by index."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops import groups


def test_pieces_are_strided_over_groups_and_put_back():
  """E0: piece 0 of 2 holds groups 0 and 2, with all their rows."""
  tree = {'prompt': jnp.arange(4), 'row': jnp.arange(8) * 10}
  split = groups.split(tree, 4, 2)
  np.testing.assert_array_equal(split['prompt'], [[0, 2], [1, 3]])
  np.testing.assert_array_equal(
    split['row'], [[0, 10, 40, 50], [20, 30, 60, 70]]
  )
  merged = groups.merge({'row': split['row']}, 4)
  np.testing.assert_array_equal(merged['row'], tree['row'])


def test_groups_are_taken_with_all_their_rows(tiny):
  """E0: prompts and rows by group index."""
  traj = tiny.rollout()
  taken = groups.take(traj, jnp.asarray([2, 0]))
  np.testing.assert_array_equal(
    taken.prompt_NP, traj.prompt_NP[np.array([2, 0])]
  )
  rows = np.array([4, 5, 0, 1])
  np.testing.assert_array_equal(taken.response_BT, traj.response_BT[rows])
  np.testing.assert_array_equal(taken.row_id_B2, traj.row_id_B2[rows])
