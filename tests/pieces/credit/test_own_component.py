"""Parrot: the advantage of the reward that a prompt names."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

REWARDS = {
  'outcome': np.array([0.0, 1.0, 0.0, 1.0], np.float32),
  'format': np.array([4.0, 2.0, 0.0, 2.0], np.float32),
}


def advantages(toy, own, rewards=None, **fields):
  """The advantages of four rows, whose prompts name these rewards."""
  rewards = REWARDS if rewards is None else rewards
  traj = toy.trajectories(
    np.ones((4, 2)),
    group_size=2,
    rewards={name: jnp.asarray(x) for name, x in rewards.items()},
    extras={'identifier_B': jnp.asarray(own, jnp.float32)},
    **fields,
  )
  piece = credit.OwnComponent()
  return np.asarray(piece(CreditContext(jnp.zeros(4), traj)).value), traj


def test_by_hand(toy):
  """Means 1/2 and 2, deviations .57735 and 1.63299: rows 0 and 1 count for
  the first reward, 2 and 3 for the second.
  """
  found, _ = advantages(toy, [0, 0, 1, 1])
  np.testing.assert_allclose(
    found, [-0.866025, 0.866025, -1.224745, 0.0], atol=1e-5
  )


def test_without_names_it_is_the_scale_of_the_batch(toy):
  """E1: the reduction."""
  found, traj = advantages(toy, [-1] * 4)
  scale = credit.ComponentScale(over='batch')
  expected = scale(CreditContext(jnp.zeros(4), traj)).value
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_unit_of_a_reward_changes_nothing(toy):
  """E1, up to eps; an invalid row is in no mean."""
  other = {**REWARDS, 'format': 10 * REWARDS['format'] + 3}
  found, _ = advantages(toy, [0, 1, 1, 0])
  np.testing.assert_allclose(
    advantages(toy, [0, 1, 1, 0], other)[0], found, rtol=1e-4, atol=1e-5
  )
  valid = np.array([1.0, 1.0, 1.0, 0.0], np.float32)
  far = {name: x + 1e3 * (valid == 0) for name, x in REWARDS.items()}
  some, _ = advantages(toy, [0, 0, 1, 1], REWARDS, valid_B=valid)
  more, _ = advantages(toy, [0, 0, 1, 1], far, valid_B=valid)
  np.testing.assert_allclose(some[:3], more[:3], rtol=1e-5)
