"""Weights of rewards that move."""

import dataclasses

import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.tasks import RewardFunctions
from rl_jax.worlds import Bandit


def rollout(toy, **parts):
  """Rows with the components."""
  rewards = {name: np.asarray(x, np.float32) for name, x in parts.items()}
  return toy.trajectories(
    np.ones((2, 1)),
    group_size=2,
    rewards=rewards,
    reward_B=np.array([9.0, 9.0], np.float32),
  )


def shaped(piece, traj, count):
  """Rewards of the last of some rollouts."""
  state = piece.init(1)
  for _ in range(count):
    found, state = piece(CreditContext(traj.reward_B, traj, state))
  return np.asarray(found)


def test_the_dynamic_variant_by_hand(toy):
  """2 f + 2/3 c at first, 1.5 f + 5/6 c half way, f + c at the end."""
  traj = rollout(toy, format=[1, 0], correct=[-3, 1.5])
  piece = shaping.ScheduledSum(first=(2.0, 2 / 3), steps=4.0)
  for count, expected in (
    (1, [0.0, 1.0]),
    (3, [-1.0, 1.25]),
    (5, [-2.0, 1.5]),
    (9, [-2.0, 1.5]),
  ):
    np.testing.assert_allclose(
      shaped(piece, traj, count), expected, rtol=1e-5, atol=1e-6
    )


def test_equal_weights_are_a_sum(toy):
  """Whatever the reward was, at any time."""
  traj = rollout(toy, format=[1, 0], correct=[2, -3])
  for count in (1, 5):
    found = shaped(shaping.ScheduledSum(), traj, count)
    np.testing.assert_array_equal(found, [3, -3])


def test_bad_weights():
  with pytest.raises(ValueError, match=r'ScheduledSum.last = \(1.0,\)'):
    shaping.ScheduledSum(last=(1.0,))


def test_components_of_a_reward_function_are_found(toy):
  """ToolRL by its own function: names of the components carry the function's.

  E0: as if the task returned them. A name that two functions have is refused.
  """
  task = RewardFunctions(
    task=Bandit(), functions={'rl_jax.tasks.call_reward:toolrl': 1.0}
  )
  example = dataclasses.replace(
    task.example('train', 0),
    answer='<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>',
  )
  call = '{"name": "f", "parameters": {"x": 1}}'
  said = [
    task.reward(example, f'{start}<tool_call>\n{call}\n</tool_call>')
    for start in ('<think>a</think>\n', '')
  ]
  assert {'toolrl', 'toolrl/format', 'toolrl/correct'} <= set(said[0])
  rewards = {name: [one[name] for one in said] for name in said[0]}
  (piece,) = toy.get_method('toolrl').shaping
  found = shaped(piece, rollout(toy, **rewards), 1)
  np.testing.assert_array_equal(found, [4.0, 3.0])  # format 1 and 0, correct 3
  with pytest.raises(
    ValueError, match="components = .'format', 'correct'.*but"
  ):
    shaped(piece, rollout(toy, **rewards, **{'other/format': [0, 0]}), 1)
