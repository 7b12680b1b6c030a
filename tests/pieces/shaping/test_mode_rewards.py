"""Thinkless: 1 for a right guess, 0.5 for a right thought, -1 if wrong."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def shaped(toy, mode, outcome, reward=None, **fields):
  """The reward of rows that are all valid."""
  B = len(mode)
  reward = np.asarray(outcome if reward is None else reward, np.float32)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    reward_B=reward,
    rewards={'outcome': np.asarray(outcome, np.float32)},
    extras={'mode_B': np.asarray(mode)},
  )
  return shaping.ModeRewards(**fields)(
    CreditContext(jnp.asarray(reward), traj)
  ).value


def test_by_hand(toy):
  """Modes 0, 0, 1, 1, 2."""
  R = shaped(toy, [0, 0, 1, 1, 2], [1, 0, 1, 0, 1])
  np.testing.assert_array_equal(R, [1, -1, 0.5, -1, 0.5])


def test_one_and_nought_are_the_outcome(toy):
  """E0: GRPO's reward."""
  outcome = [1, 0, 1, 0]
  R = shaped(toy, [0, 0, 1, 1], outcome, thought=1.0, wrong=0.0)
  np.testing.assert_array_equal(R, outcome)


def test_only_the_outcome_counts(toy):
  """E0: parts for format or length change nothing."""
  mode, outcome = [0, 1, 1], [1, 1, 0]
  R = shaped(toy, mode, outcome, reward=[7.0, 0.2, 0.9])
  np.testing.assert_array_equal(R, shaped(toy, mode, outcome))
