"""OTC's factor of the reward by the number of tool calls."""

import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.types import Turns


def shaped(toy, calls, reward, valid=None, split=False, **fields):
  """Rewards of a group; split: the calls are made in two turns."""
  calls, reward = np.asarray(calls), np.asarray(reward, np.float32)
  by_turn = np.stack([calls - calls // 2, calls // 2] if split else [calls], 1)
  unknown = np.full(by_turn.shape, -1)
  traj = toy.trajectories(
    np.ones((len(calls), 2)),
    group_size=len(calls),
    reward_B=reward,
    valid_B=np.ones(len(calls)) if valid is None else np.asarray(valid),
    turns=Turns(
      reward_BK=np.zeros(by_turn.shape, np.float32),
      state_BK=unknown,
      action_BK=unknown,
      calls_BK=by_turn,
    ),
  )
  return shaping.ToolCost(**fields)(CreditContext(reward, traj)).value


@pytest.mark.parametrize('split', [False, True])
def test_by_hand_around_the_fewest_calls(toy, split):
  """n = 2: sin of pi/2 times 2/3, 1, 4/3 and 8/5 at m = 1, 2, 4, 8.

  The row without a call is wrong: it has no part in n, and sin 0.
  """
  found = shaped(toy, [0, 2, 4, 8, 3], [0.2, 1, 1, 1, 1], split=split)
  expected = [0, 1, 0.866025, 0.587785, 0.951057]
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_by_hand_without_a_comparison(toy):
  """cos(m pi / (2 m + c)) at c = 1 and m = 0, 1, 2, 4; alpha 2; also n = 0."""
  expected = np.array([1, 0.5, 0.309017, 0.173648])
  for fields in ({'compared': False}, {}):
    found = shaped(toy, [0, 1, 2, 4], [1, 1, 1, 1], alpha=2.0, **fields)
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-5)
  wider = shaped(toy, [1], [1], compared=False, smoothing=2.0)
  np.testing.assert_allclose(wider, [0.707107], rtol=1e-5)


def test_equal_calls_change_nothing(toy):
  """Reduction: GRPO's rewards where every row calls as often, or none does."""
  reward = [1.0, 0.5, 0.0]
  np.testing.assert_allclose(shaped(toy, [3, 3, 3], reward), reward, rtol=1e-6)
  traj = toy.trajectories(np.ones((3, 2)), group_size=3)
  plain = shaping.ToolCost()(
    CreditContext(np.asarray(reward, np.float32), traj)
  ).value
  np.testing.assert_array_equal(plain, reward)


def test_rows_that_are_not_right_or_not_valid_set_no_least(toy):
  """Invariance: their calls change no other row; m -> n^2 / m has equal w."""
  one = shaped(toy, [2, 4, 1, 1], [1, 1, 0, 1], valid=[1, 1, 1, 0])
  other = shaped(toy, [2, 4, 9, 0], [1, 1, 0, 1], valid=[1, 1, 1, 0])
  np.testing.assert_array_equal(one[:2], other[:2])
  found = shaped(toy, [2, 1, 4], [1, 0.4, 0.4])
  np.testing.assert_allclose(found[1], found[2], rtol=1e-6)
