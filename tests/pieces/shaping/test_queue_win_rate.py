"""Win rates against a queue of earlier samples."""

import numpy as np

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def rollout(toy, piece, state, rewards, prompts=(0,), valid=None):
  """(rates, state) of a rollout with groups of two."""
  valid = np.ones(len(rewards)) if valid is None else np.array(valid)
  traj = toy.trajectories(
    np.ones((len(rewards), 1)),
    group_size=2,
    valid_B=valid,
    prompt_id_N=np.array(prompts, np.int32),
  )
  return piece(CreditContext(np.float32(rewards), traj, state))


def test_by_hand(toy):
  """1/2 of an empty queue; then against (1, 3); then against the last three."""
  piece = shaping.QueueWinRate(size=3)
  state = piece.init(2)
  rates, state = rollout(toy, piece, state, [1.0, 3.0])
  np.testing.assert_array_equal(rates, [0.5, 0.5])
  rates, state = rollout(toy, piece, state, [2.0, 3.0])
  np.testing.assert_array_equal(rates, [0.5, 0.75])
  rates, state = rollout(toy, piece, state, [2.0, 9.0])  # of 2, 3 and 1
  np.testing.assert_allclose(rates, [0.5, 1.0])
  # Another prompt has its own queue.
  rates, _ = rollout(toy, piece, state, [7.0, 8.0], prompts=(1,))
  np.testing.assert_array_equal(rates, [0.5, 0.5])


def test_invalid_samples_are_no_rivals(toy):
  piece = shaping.QueueWinRate(size=4)
  _, state = rollout(toy, piece, piece.init(1), [5.0, 99.0], valid=[1, 0])
  rates, _ = rollout(toy, piece, state, [6.0, 5.0])
  np.testing.assert_array_equal(rates, [1.0, 0.5])


def test_only_the_order_of_rewards_counts(toy):
  """E0."""
  piece, found = shaping.QueueWinRate(), []
  for change in (lambda x: x, lambda x: np.exp(x) - 7):
    _, state = rollout(toy, piece, piece.init(1), change(np.array([1.0, 3.0])))
    found.append(rollout(toy, piece, state, change(np.array([2.0, 4.0])))[0])
  np.testing.assert_array_equal(*found)
