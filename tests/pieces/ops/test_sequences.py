"""Rows, groups and runs by hand."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops import sequences

ON = np.array([[1.0, 1, 0, 1, 0, 0], [0, 1, 1, 1, 0, 1]], np.float32)
X = np.array([[1.0, 2, 9, 4, 9, 9], [9, 1, 2, 3, 9, 5]], np.float32)


def test_run_sum():
  """Runs 1 + 2 and 4; 1 + 2 + 3 and 5; what lies between is not read."""
  expected = [[3, 3, 0, 4, 0, 0], [0, 6, 6, 6, 0, 5]]
  actual = sequences.run_sum(jnp.asarray(X), jnp.asarray(ON))
  np.testing.assert_allclose(actual, expected)


def test_run_starts():
  """The first token of each run."""
  expected = [[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 1]]
  np.testing.assert_array_equal(sequences.run_starts(jnp.asarray(ON)), expected)


def test_row_weight(toy):
  """Weight, validity and a trained token are all needed."""
  mask = np.array([[1.0, 0], [1, 0], [0, 0], [1, 1]])
  traj = toy.trajectories(
    mask,
    group_size=2,
    weight_B=np.array([1.0, 0.0, 1.0, 0.5]),
    valid_B=np.array([0.0, 1.0, 1.0, 1.0]),
  )
  np.testing.assert_array_equal(sequences.row_weight(traj), [0, 0, 0, 0.5])


def test_summed_log_ratio():
  """.1 + .2 over kept tokens; the sum is cut at 20 nats as each token is."""
  logp = jnp.array([[0.1, 0.2, 9.0], [15.0, 15.0, 0.0]])
  mask = jnp.array([[1.0, 1, 0], [1, 1, 1]])
  actual = sequences.summed_log_ratio(logp, 0 * logp, mask)
  np.testing.assert_allclose(actual, [0.3, 20.0], rtol=1e-6)


def test_mean_over_groups():
  """The second of three groups has no row with a weight."""
  weight = jnp.array([1.0, 0, 0, 0, 0.5, 0.5])
  value = jnp.array([1.0, 7.0, 4.0])
  assert sequences.mean_over_groups(value, weight) == 2.5


def test_pair_weights():
  """Products, and no row with itself."""
  actual = sequences.pair_weights(jnp.array([[1.0, 0.5, 0.0]]))
  np.testing.assert_array_equal(actual, [[[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]])
