"""Reward scaling by running moments, as in PPO-max."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def feed(toy, piece, state, *rollouts):
  """Feeds rollouts; the last scaled rewards and the state."""
  for reward in rollouts:
    traj = toy.trajectories(np.ones((len(reward), 1)), group_size=1)
    scaled, state = piece(
      CreditContext(jnp.asarray(reward, jnp.float32), traj, state)
    )
  return np.asarray(scaled), state


def test_by_hand(toy):
  """After 1, 3 the std is sqrt 2; after 5, 7 the mean is 4 and the variance
  (9 + 1 + 1 + 9) / 3 = 20/3, std 2.581989."""
  piece = shaping.RunningScale()
  scaled, state = feed(toy, piece, piece.init(1), [1, 3])
  np.testing.assert_allclose(scaled, [0.707107, 2.121320], rtol=1e-5)
  scaled, state = feed(toy, piece, state, [5, 7])
  np.testing.assert_allclose(scaled, [1.936492, 2.711088], rtol=1e-5)
  centered = shaping.RunningScale(center=True, clip=1.0)
  scaled, _ = feed(toy, centered, centered.init(1), [1, 3], [5, 7])
  np.testing.assert_allclose(scaled, [0.387298, 1.0], rtol=1e-5)


def test_rows_of_data_are_scaled_but_do_not_count(toy):
  """The scale is that after 1, 3: a recorded 7 is divided by sqrt 2, too."""
  piece, reward = shaping.RunningScale(), jnp.array([1.0, 3.0, 7.0])
  extras = {'logged_B': np.array([0.0, 0.0, 1.0])}
  traj = toy.trajectories(np.ones((3, 1)), group_size=1, extras=extras)
  scaled, state = piece(CreditContext(reward, traj, piece.init(1)))
  np.testing.assert_allclose(scaled, reward / 2**0.5, rtol=1e-5)
  assert state['count'] == 2


def test_eps_is_added_to_the_std(toy):
  """1 and 3 divided by sqrt 2 + 1."""
  piece = shaping.RunningScale(eps=1.0)
  scaled, _ = feed(toy, piece, piece.init(1), [1, 3])
  np.testing.assert_allclose(scaled, [0.414214, 1.242641], rtol=1e-5)


def test_what_counts_as_constant(toy):
  """A std of 1.35e-6 of the mean (1024 and one of 1024 + 2^-9) is a scale, one
  of 6.7e-7 is rounding: 2^-10 / (2^-9 / sqrt 2), and 2^-11 itself."""
  piece = shaping.RunningScale(center=True)
  scaled, _ = feed(toy, piece, piece.init(1), [1024, 1024 + 2**-9])
  np.testing.assert_allclose(scaled, [-0.707107, 0.707107], rtol=1e-5)
  scaled, _ = feed(toy, piece, piece.init(1), [1024, 1024 + 2**-10])
  np.testing.assert_allclose(scaled, [-(2**-11), 2**-11], rtol=1e-5)


def test_a_constant_stream_is_left_alone(toy):
  """No division by a standard deviation of 0."""
  piece = shaping.RunningScale()
  for value in (0.0, 0.1, 1 / 3, -1e4 / 7):
    stream = [[value] * n for n in (3, 7, 11)]
    scaled, _ = feed(toy, piece, piece.init(1), *stream)
    np.testing.assert_allclose(scaled, value, rtol=1e-6)


def test_any_split_of_the_stream_has_the_same_moments(toy):
  """E1: one rollout of six against three of two; a unit of reward drops out."""
  piece, stream = shaping.RunningScale(), [1.0, 4, 2, 8, 5, 7]
  _, whole = feed(toy, piece, piece.init(1), stream)
  last, parts = feed(
    toy, piece, piece.init(1), stream[:2], stream[2:4], stream[4:]
  )
  for name in whole:
    np.testing.assert_allclose(parts[name], whole[name], rtol=1e-5)
  piece = shaping.RunningScale(eps=1e-12)
  for unit in (100, 1e-4):
    other = [unit * x for x in stream]
    again, _ = feed(toy, piece, piece.init(1), other[:2], other[2:4], other[4:])
    np.testing.assert_allclose(again, last, rtol=1e-5)


def test_invalid_rewards_are_not_counted(toy):
  """E0: the moments of the valid rows."""
  piece = shaping.RunningScale()
  _, expected = feed(toy, piece, piece.init(1), [1, 3])
  traj = toy.trajectories(
    np.ones((3, 1)), group_size=1, valid_B=np.array([1.0, 1, 0])
  )
  _, state = piece(
    CreditContext(jnp.array([1.0, 3.0, 99.0]), traj, piece.init(1))
  )
  for name in state:
    np.testing.assert_array_equal(state[name], expected[name])


def test_state_survives_a_save(toy):
  """E0: 2 N = N, save, restore, N."""
  piece = shaping.RunningScale(center=True)
  direct, _ = feed(toy, piece, piece.init(1), [1, 2], [3, 9], [0, 1], [4, 4])
  _, half = feed(toy, piece, piece.init(1), [1, 2], [3, 9])
  half = {k: jnp.asarray(np.array(v)) for k, v in half.items()}
  resumed, _ = feed(toy, piece, half, [0, 1], [4, 4])
  np.testing.assert_array_equal(direct, resumed)
  with pytest.raises(ValueError, match='RunningScale.clip = 0.0'):
    shaping.RunningScale(clip=0.0)
