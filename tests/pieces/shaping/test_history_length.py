"""HAPO's length term against a shortest right length of 1000."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def rollout(toy, length, right, ids=(0,)):
  """Groups of equal size."""
  B = len(length)
  return toy.trajectories(
    np.ones((B, 1)),
    group_size=B // len(ids),
    prompt_id_N=np.asarray(ids, np.int32),
    length_B=np.asarray(length, np.int32),
    reward_B=np.asarray(right, np.float32),
  )


def shaped(toy, piece, length, right, shortest=1000.0):
  """R of one group with a known history."""
  traj = rollout(toy, length, right)
  state = {'shortest': jnp.array([shortest])}
  return piece(CreditContext(traj.reward_B, traj, state))[0]


LENGTHS = [500, 1000, 1500, 2500]


def test_cosine_by_hand(toy):
  """cos(pi/2 L/h) = .7071, 0, -.7071 and -1 from 2 h on; at least -.7 when
  right, at most 0 when wrong."""
  piece = shaping.HistoryLength()
  np.testing.assert_allclose(
    shaped(toy, piece, LENGTHS, [1] * 4), [1.707107, 1, 0.3, 0.3], rtol=1e-5
  )
  np.testing.assert_allclose(
    shaped(toy, piece, LENGTHS, [0] * 4), [0, 0, -0.707107, -1], atol=1e-6
  )


def test_linear_by_hand(toy):
  """tau .1: right .5 at 500, 0 at 1050, -.4 at 1500, the floor -.7 at 2500;
  wrong 0, 0, -.4, -1."""
  piece = shaping.HistoryLength(shape='linear', weight=0.5)
  length = [500, 1050, 1500, 2500]
  np.testing.assert_allclose(
    shaped(toy, piece, length, [1] * 4), [1.25, 1, 0.8, 0.65], rtol=1e-5
  )
  np.testing.assert_allclose(
    shaped(toy, piece, length, [0] * 4), [0, 0, -0.2, -0.5], atol=1e-6
  )


@pytest.mark.parametrize('shape', ['cosine', 'linear'])
def test_behind_an_empty_right_response(toy, shape):
  """h = 0 counts as 1: L = 0 gains 1 and L = 1 gains cos(pi/2), 1 - 1."""
  piece = shaping.HistoryLength(shape=shape)
  found = shaped(toy, piece, [0, 1], [1, 1], shortest=0.0)
  np.testing.assert_allclose(found, [2, 1], atol=1e-6)


def test_first_visit_and_weight_zero_are_grpo(toy):
  """E0: the plain reward."""
  right = [1.0, 0, 1, 0]
  first = shaped(toy, shaping.HistoryLength(), LENGTHS, right, np.inf)
  off = shaped(toy, shaping.HistoryLength(weight=0.0), LENGTHS, right)
  np.testing.assert_array_equal(first, right)
  np.testing.assert_array_equal(off, right)


def test_right_always_beats_wrong(toy):
  """min right = 1 - .7 > 0 >= max wrong, for any length."""
  length = np.arange(1, 4000, 100)
  piece = shaping.HistoryLength()
  right = shaped(toy, piece, length, np.ones(len(length)))
  wrong = shaped(toy, piece, length, np.zeros(len(length)))
  assert right.min() >= 0.3 - 1e-6 and wrong.max() <= 0


def test_history_is_the_shortest_right_length(toy):
  """Per prompt id, never longer; wrong rows do not count, ids beyond the table
  read and write nothing."""
  piece = shaping.HistoryLength()
  state = piece.init(3)
  traj = rollout(toy, [9, 4, 7, 8, 5, 6], [1, 0, 1, 0, 1, 1], ids=(2, 0, 7))
  R, state = piece(CreditContext(traj.reward_B, traj, state))
  np.testing.assert_array_equal(R, traj.reward_B)  # all saw the old history
  np.testing.assert_array_equal(state['shortest'], [7, np.inf, 9])
  R, state = piece(CreditContext(traj.reward_B, traj, state))
  np.testing.assert_array_equal(state['shortest'], [7, np.inf, 9])
  np.testing.assert_allclose(R[:1], [1.0], atol=1e-6)  # L = h
  np.testing.assert_array_equal(R[4:], [1, 1])  # id 7 has no history


@pytest.mark.parametrize('shape', ['cosine', 'linear'])
def test_state_survives_a_save(toy, shape):
  """E0: 2 N = N, save, restore, N."""
  piece = shaping.HistoryLength(shape=shape)
  steps = [
    rollout(toy, length, [1, 1, 0, 1], ids=(1, 0))
    for length in ([9, 7, 3, 8], [6, 8, 9, 9], [7, 5, 4, 7], [6, 6, 6, 6])
  ]
  state = half = piece.init(2)
  for i, traj in enumerate(steps):
    direct, state = piece(CreditContext(traj.reward_B, traj, state))
    if i == 2:
      half = {k: jnp.asarray(np.array(v)) for k, v in half.items()}
    resumed, half = piece(CreditContext(traj.reward_B, traj, half))
  np.testing.assert_array_equal(direct, resumed)
  np.testing.assert_array_equal(state['shortest'], half['shortest'])
  np.testing.assert_array_equal(state['shortest'], [6, 5])
