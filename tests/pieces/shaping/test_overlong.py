"""DAPO's length penalty."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.types import ENVIRONMENT, POLICY


def test_paper_constants(toy):
  """Buffer 4096 below 20480: nothing at 16384, half at 18432, all at 20480."""
  length = np.array([100, 16384, 18432, 20480], np.int32)
  traj = toy.trajectories(np.ones((4, 1)), group_size=4, length_B=length)
  shaped = shaping.OverlongPenalty()(CreditContext(jnp.ones(4), traj)).value
  np.testing.assert_allclose(shaped, [1.0, 1.0, 0.5, 0.0])
  doubled = shaping.OverlongPenalty(coef=2.0)(
    CreditContext(jnp.ones(4), traj)
  ).value
  np.testing.assert_allclose(doubled, [1.0, 1.0, 0.0, -1.0])


def test_every_field_moves_the_penalty(toy):
  """Limit 10, buffer 4: lengths 6, 7, 10 lose 0, 1/4, 1."""
  length = np.array([6, 7, 10, 0], np.int32)
  traj = toy.trajectories(np.ones((4, 1)), group_size=4, length_B=length)
  piece = shaping.OverlongPenalty(max_tokens=10.0, buffer_tokens=4.0)
  np.testing.assert_allclose(
    piece(CreditContext(jnp.zeros(4), traj)).value, [0, -0.25, -1, 0]
  )


def test_what_tools_said_is_no_length_of_the_policy(toy):
  """Limit 4, buffer 2: ten tokens, of which the policy wrote 2, 3 and 4.

  They lose 0, 1/2 and 1; counts='all' takes 4 of each, (4 - 2 - 10) / 2.
  """
  written = np.array([[2], [3], [4]])
  place = np.arange(10)[None]
  kind = np.where(place < written, POLICY, ENVIRONMENT)
  traj = toy.trajectories(
    kind == POLICY,
    group_size=3,
    kind_BT=kind,
    length_B=np.full(3, 10, np.int32),
  )
  piece = shaping.OverlongPenalty(max_tokens=4.0, buffer_tokens=2.0)
  np.testing.assert_allclose(
    piece(CreditContext(jnp.zeros(3), traj)).value, [0, -0.5, -1]
  )
  every = piece.replace(counts='all')
  np.testing.assert_allclose(
    every(CreditContext(jnp.zeros(3), traj)).value, [-4, -4, -4]
  )


def test_both_counts_are_equal_for_single_responses(toy):
  """E0."""
  traj = toy.trajectories(np.tri(6), group_size=3)
  piece = shaping.OverlongPenalty(max_tokens=5.0, buffer_tokens=4.0)
  reward = jnp.linspace(0.1, 0.6, 6)
  expected = piece.replace(counts='all')(CreditContext(reward, traj)).value
  np.testing.assert_array_equal(
    piece(CreditContext(reward, traj)).value, expected
  )


def test_coef_zero_changes_nothing(toy):
  """E0: the unshaped reward."""
  length = np.array([30000, 16384], np.int32)
  traj = toy.trajectories(np.ones((2, 1)), group_size=2, length_B=length)
  reward = jnp.array([0.3, -1.0])
  np.testing.assert_array_equal(
    shaping.OverlongPenalty(coef=0.0)(CreditContext(reward, traj)).value, reward
  )
