"""A2FM: 1 - p^2 on freely chosen expensive modes."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def shaped(toy, mode, forced, reward, valid=None, **fields):
  """The reward of one group, all valid by default."""
  B = len(mode)
  reward = np.asarray(reward, np.float32)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    reward_B=reward,
    valid_B=np.ones(B) if valid is None else np.asarray(valid, np.float32),
    extras={'mode_B': np.asarray(mode), 'forced_B': np.asarray(forced)},
  )
  return shaping.AdaptiveModeReward(**fields)(
    CreditContext(jnp.asarray(reward), traj)
  ).value


@pytest.mark.parametrize(
  'instant, factor', [((0, 0), 1.0), ((1, 0), 0.75), ((1, 1), 0.0)]
)
def test_by_hand(toy, instant, factor):
  """p = 0, 1/2, 1. Rows: two forced instant, one forced agentic, then free:
  agentic (paid), instant."""
  R = shaped(toy, [0, 0, 2, 2, 0], [1, 1, 1, 0, 0], [*instant, 1, 1, 1])
  np.testing.assert_allclose(R, [*instant, 1, factor, 1], rtol=1e-6)


def test_invalid_rows_are_not_in_the_rate(toy):
  """Forced instant rows 1, 0 and an invalid 1: p = 1/2 pays 3/4."""
  R = shaped(toy, [0, 0, 0, 1], [1, 1, 1, 0], [1, 0, 1, 1], valid=[1, 1, 0, 1])
  np.testing.assert_allclose(R[3], 0.75, rtol=1e-6)


def test_the_rate_is_that_of_right_rows(toy):
  """Rewards of 2 are p = 1, part marks of .1 p = 0."""
  R = shaped(toy, [0, 0, 1], [1, 1, 0], [2, 2, 1])
  np.testing.assert_array_equal(R, [2, 2, 0])
  R = shaped(toy, [0, 0, 1], [1, 1, 0], [0.1, 0.1, 1])
  np.testing.assert_allclose(R, [0.1, 0.1, 1], rtol=1e-6)


def test_without_forced_rows_it_is_grpo(toy):
  """E0: nothing is known of the instant mode."""
  reward = [1.0, 0, 1, 1]
  np.testing.assert_array_equal(
    shaped(toy, [0, 1, 2, 1], [0, 0, 0, 0], reward), reward
  )


def test_alpha_moves_the_penalty(toy):
  """p = 1/2: alpha 1 pays 1/2, alpha 3 pays 7/8."""
  for alpha, factor in ((1.0, 0.5), (3.0, 0.875)):
    R = shaped(toy, [0, 0, 1], [1, 1, 0], [1, 0, 1], alpha=alpha)
    np.testing.assert_allclose(R[2], factor, rtol=1e-6)
  with pytest.raises(ValueError, match='AdaptiveModeReward.alpha = 0.0'):
    shaping.AdaptiveModeReward(alpha=0.0)
