"""Ada-GRPO's factor for eight samples and its decay."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit, shaping
from rl_jax.pieces.roles import CreditContext


def rollout(toy, formats=(0, 1, 1, 1, 1, 1, 1, 1)):
  """One group."""
  return toy.trajectories(
    np.ones((8, 1)),
    group_size=8,
    extras={'format_id_B': np.asarray(formats)},
  )


def at(steps):
  """The state after so many rollouts."""
  return {'rollouts': jnp.asarray(steps, jnp.int32)}


@pytest.mark.parametrize(
  'steps, rare, common',
  # 1 + (8/F - 1) (1 + cos(pi t / T)) / 2 with F = 1 and 7.
  [(0, 8.0, 1.142857), (50, 4.5, 1.071429), (100, 1.0, 1.0), (300, 1.0, 1.0)],
)
def test_factor_by_hand(toy, steps, rare, common):
  """t = 0, T/2, T, and beyond, where it stays 1."""
  R, _ = shaping.FormatRarity()(
    CreditContext(jnp.ones(8), rollout(toy), at(steps))
  )
  np.testing.assert_allclose(R, [rare] + [common] * 7, rtol=1e-5)


def test_common_right_answers_can_turn_negative(toy):
  """R = 1 but for sample 3, t = 0: A = 2.44336, -.28411, and -.73869."""
  traj = rollout(toy)
  reward = jnp.array([1.0, 1, 1, 0, 1, 1, 1, 1])
  R, _ = shaping.FormatRarity()(CreditContext(reward, traj, at(0)))
  A = credit.GroupScale()(
    CreditContext(credit.GroupCenter()(CreditContext(R, traj)).value, traj)
  ).value
  expected = np.full(8, -0.28411)
  expected[[0, 3]] = 2.44336, -0.73869
  np.testing.assert_allclose(A, expected, rtol=2e-5)


def test_one_format_is_grpo(toy):
  """E0: the reward as it was."""
  reward = jnp.arange(8.0)
  R, _ = shaping.FormatRarity()(
    CreditContext(reward, rollout(toy, np.zeros(8)), at(0))
  )
  np.testing.assert_array_equal(R, reward)


def test_invalid_rows_are_not_counted(toy):
  """Seven valid rows, two of format 1: 7 / 2 and 7 / 5."""
  traj = rollout(toy, [1, 1, 1, 0, 0, 0, 0, 0])
  traj = traj.replace(valid_B=jnp.ones(8).at[2].set(0.0))
  R, _ = shaping.FormatRarity()(CreditContext(jnp.ones(8), traj, at(0)))
  np.testing.assert_allclose(R, [3.5, 3.5, 1] + [1.4] * 5, rtol=1e-6)


def test_state_counts_rollouts(toy):
  """E0: 2 N = N, save, restore, N."""
  piece, traj, one = shaping.FormatRarity(), rollout(toy), jnp.ones(8)
  state = piece.init(3)
  for _ in range(4):
    direct, state = piece(CreditContext(one, traj, state))
  half = piece.init(3)
  for _ in range(2):
    _, half = piece(CreditContext(one, traj, half))
  half = {k: jnp.asarray(np.array(v)) for k, v in half.items()}
  for _ in range(2):
    resumed, half = piece(CreditContext(one, traj, half))
  assert int(state['rollouts']) == int(half['rollouts']) == 4
  np.testing.assert_array_equal(direct, resumed)
