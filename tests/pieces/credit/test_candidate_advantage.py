"""Values of candidate steps against their mean."""

import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def advantages(toy, value, kept=(1, 1, 1, 1), **fields):
  """Advantages of one state with four rows."""
  traj = toy.trajectories(
    np.ones((4, 2)),
    group_size=4,
    extras={
      'candidate_B': np.asarray(kept, np.float32),
      'candidate_value_B': np.asarray(value, np.float32),
    },
    **fields,
  )
  return np.asarray(
    credit.CandidateAdvantage()(CreditContext(traj.reward_B, traj)).value
  )


def test_by_hand(toy):
  """.8, .5, .2 are .3, 0, -.3 from their mean; the repeated .8 counts not."""
  found = advantages(toy, [0.8, 0.5, 0.2, 0.8], kept=[1, 1, 1, 0])
  np.testing.assert_allclose(found, [0.3, 0.0, -0.3, 0.0], atol=1e-6)


def test_values_of_the_responses_are_centred_rewards(toy):
  """E0: where every step ends its response, group centring."""
  reward = np.array([1.0, 0.0, 0.0, 1.0])
  traj = toy.trajectories(np.ones((4, 2)), group_size=4, reward_B=reward)
  expected = credit.GroupCenter()(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_array_equal(advantages(toy, reward), expected)


def test_rewards_and_a_shift_of_the_values_change_nothing(toy):
  value = np.array([0.75, 0.5, 0.25, 0.0])
  found = advantages(toy, value + 2.0, reward_B=np.arange(4.0))
  np.testing.assert_array_equal(found, advantages(toy, value))


def test_invalid_rows_are_no_candidates(toy):
  """.5 and .2 are left."""
  found = advantages(
    toy,
    [0.8, 0.5, 0.2, 0.8],
    kept=[1, 1, 1, 0],
    valid_B=np.array([0.0, 1.0, 1.0, 1.0]),
  )
  np.testing.assert_allclose(found, [0.0, 0.15, -0.15, 0.0], atol=1e-6)


def test_values_of_the_critic_by_hand(toy):
  """Logits log 4, 0, -log 4 after the second token are .8, .5, .2; the last
  response ends with its step, and its reward is the value: mean .625. What the
  completions of the others earned is not read."""
  after = np.full((4, 3), 9.0)
  after[:3, 1] = np.log([4.0, 1.0, 0.25])
  found = {}
  for other in (0.0, 0.6):
    traj = toy.trajectories(
      np.array([[1, 1, 0]] * 3 + [[1, 1, 1]]),
      group_size=4,
      extras={
        'candidate_B': np.ones(4, np.float32),
        'candidate_value_B': np.array([other, 0, 0, 1.0], np.float32),
        'candidate_ends_B': np.array([0, 0, 0, 1.0], np.float32),
        'values_after': after.astype(np.float32),
      },
    )
    piece = credit.CandidateAdvantage(critic=True)
    found[other] = np.asarray(piece(CreditContext(traj.reward_B, traj)).value)
  expected = [0.175, -0.125, -0.425, 0.375]
  np.testing.assert_allclose(found[0.0], expected, atol=1e-6)
  np.testing.assert_array_equal(found[0.0], found[0.6])
