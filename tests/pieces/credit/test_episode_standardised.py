"""Returns standardised within episodes, and weights of durations, by hand."""

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.config import validate
from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext
from rl_jax.types import Turns


def episodes(toy, reward, turns=None, duration=None, **fields):
  """One token a turn; turns: those of each row that were played."""
  reward = np.asarray(reward, np.float32)
  B, K = reward.shape
  played = np.full(B, K) if turns is None else np.asarray(turns)
  mask = (np.arange(K) < played[:, None]).astype(np.float32)
  unknown = np.full((B, K), -1)
  traj = toy.trajectories(
    mask,
    group_size=B,
    turn_BT=np.where(mask > 0, np.arange(K)[None], -1),
    turns=Turns(
      reward_BK=reward,
      state_BK=unknown,
      action_BK=unknown,
      calls_BK=np.zeros((B, K), np.int32),
      duration_BK=None if duration is None else np.asarray(duration),
    ),
    **fields,
  )
  return traj


def test_three_turns_by_hand(toy):
  """-0.5, 0.5, 1 at gamma 0.999: returns 0.9975, 1.499, 1."""
  reward = np.array([[-0.5, 0.5, 1.0], [3.0, 0, 0]], np.float32)
  traj = episodes(toy, reward, turns=[3, 1])
  found = credit.EpisodeStandardised()(CreditContext(reward, traj)).value
  expected = [[-0.581684, 1.154674, -0.572990], [3, 0, 0]]
  np.testing.assert_allclose(found, expected, rtol=1e-4)
  scaled = credit.EpisodeStandardised()(CreditContext(5 * reward, traj)).value
  np.testing.assert_allclose(scaled[0], found[0], rtol=1e-5)


def test_two_turns_are_plus_and_minus(toy):
  """1/sqrt(2), whatever they earned; turns that earned the same have 0."""
  reward = np.array([[1.0, 7.0], [0.0, 0.0]], np.float32)
  found = credit.EpisodeStandardised(gamma=0.0)(
    CreditContext(reward, episodes(toy, reward))
  ).value
  half = 0.5**0.5
  np.testing.assert_allclose(found, [[-half, half], [0, 0]], rtol=1e-5)


def test_equal_returns_are_exactly_zero(toy):
  """.9 at the end, gamma 1: three returns of .9, whose float32 mean is not .9.

  Divided by eps, the difference of 6e-8 would be an advantage of .7.
  """
  reward = np.array([[0.0, 0.0, 0.9]], np.float32)
  piece = credit.EpisodeStandardised(gamma=1.0)
  found = piece(CreditContext(reward, episodes(toy, reward))).value
  np.testing.assert_array_equal(found, [[0, 0, 0]])


def test_durations_by_hand(toy):
  """1, 10, 1, 4: 1/4, 5/2, 1/4, 1; an invalid row is not in the mean."""
  ones = np.ones((3, 2), np.float32)
  duration = np.array([[1.0, 10.0], [1.0, 4.0], [50.0, 50.0]], np.float32)
  traj = episodes(
    toy, ones, duration=duration, valid_B=np.array([1.0, 1.0, 0.0])
  )
  found = credit.DurationWeight()(CreditContext(ones, traj)).value
  np.testing.assert_allclose(found[:2], [[0.25, 2.5], [0.25, 1]])
  by_row = credit.DurationWeight()(
    CreditContext(np.array([1.0, 2.0, 0.0]), traj)
  ).value
  np.testing.assert_allclose(by_row[:2], [[0.25, 2.5], [0.5, 2]])


def test_without_durations_and_with_equal_ones_nothing_changes(toy):
  credit_BT = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
  for duration in (None, np.full((2, 2), 3.0, np.float32)):
    traj = episodes(toy, credit_BT, duration=duration)
    found = credit.DurationWeight()(CreditContext(credit_BT, traj)).value
    np.testing.assert_allclose(found, credit_BT)


# Three arms, of which the second is slow.
REWARD, DURATION = np.array([0.6, 0.5, 0.3]), np.array([1.0, 10.0, 1.0])
ADVANTAGE = REWARD - REWARD.mean()  # for pi = (1/3, 1/3, 1/3)


def gradient(toy, counts):
  """d mean(A_w log pi) / d logits of a row for every time an arm is seen."""
  arm = np.repeat(np.arange(3), counts)
  traj = episodes(toy, ADVANTAGE[arm, None], duration=DURATION[arm, None])
  weighted = credit.DurationWeight()(CreditContext(ADVANTAGE[arm], traj)).value[
    :, 0
  ]
  return (weighted[:, None] * (np.eye(3)[arm] - 1 / 3)).mean(0)


def test_the_gradient_is_that_of_a_collector_with_a_time_limit(toy):
  """E1. A = (4, 1, -5) / 30, whose gradient is A / 3: the best arm gains most.

  In 10 units of time the arms are seen 10, 1 and 10 times: the mean duration is
  30/21, the weights are (.7, 7, .7), and 10 .7 = 1 7. Synchronous rollouts see
  each once: weights (.25, 2.5, .25), w A = (1, 2.5, -1.25) / 30, and without
  their mean .75 / 30 the slow arm gains seven times as much as the best one.
  """
  np.testing.assert_allclose(
    gradient(toy, [10, 1, 10]), ADVANTAGE / 3, rtol=1e-5
  )
  np.testing.assert_allclose(
    gradient(toy, [1, 1, 1]), np.array([0.25, 1.75, -2.0]) / 90, rtol=1e-5
  )


def test_synchronous_rollouts_are_refused():
  """By the name of the piece, and so is its method; without it, it trains."""
  with pytest.raises(ValueError, match='DurationWeight .* synchronous'):
    validate(configuration.build('priced_tools', 'duration_ppo'))
  without = ['method.credit.DurationWeight=null']
  validate(configuration.build('priced_tools', 'duration_ppo', without))


def test_a_collector_with_a_time_limit_is_unbiased(toy):
  """pi = (1/2, 1/2): in one time 10 fast actions and 1 of 10 units are seen."""
  duration = np.array([[10.0]] + 10 * [[1.0]], np.float32)
  ones = np.ones_like(duration)
  found = credit.DurationWeight()(
    CreditContext(ones, episodes(toy, ones, duration=duration))
  ).value
  np.testing.assert_allclose(found[0, 0], found[1:].sum())
  assert ones[0, 0] < ones[1:].sum()
