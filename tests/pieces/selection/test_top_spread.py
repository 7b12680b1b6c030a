"""The filter of StarPO-S."""

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.config import validate
from rl_jax.pieces import selection
from rl_jax.pieces.roles import CreditContext

# Deviations 0, .5, .5774, 0.
REWARD = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]])


def kept(toy, fraction, reward=REWARD, **fields):
  """Its result for groups of four."""
  reward = np.asarray(reward, np.float32)
  traj = toy.trajectories(
    np.ones((reward.size, 1)),
    group_size=4,
    reward_B=reward.ravel(),
    **fields,
  )
  return selection.TopSpread(fraction=fraction)(
    CreditContext(traj.reward_B, traj)
  ).value.tolist()


@pytest.mark.parametrize(
  ('fraction', 'expected'),
  [
    (0.1, [0, 0, 1, 0]),  # at least one
    (0.25, [0, 0, 1, 0]),
    (0.5, [0, 1, 1, 0]),
    (0.75, [1, 1, 1, 1]),  # equal groups stay together
    (1.0, [1, 1, 1, 1]),  # E0: no filter
  ],
)
def test_by_hand(toy, fraction, expected):
  assert kept(toy, fraction) == expected


def test_rows_that_were_not_verified_do_not_count(toy):
  """The third group has two equal rewards left."""
  valid = np.ones(16)
  valid[[8, 9]] = 0.0
  assert kept(toy, 0.25, valid_B=valid) == [0, 1, 0, 0]


def test_units_and_order_change_nothing(toy):
  """E0: a linear change of rewards, rows and groups turned round."""
  assert kept(toy, 0.5, 3.0 - 2.0 * REWARD) == [0, 1, 1, 0]
  assert kept(toy, 0.5, REWARD[:, ::-1]) == [0, 1, 1, 0]
  assert kept(toy, 0.5, REWARD[[2, 0, 3, 1]]) == [1, 0, 0, 1]


def test_groups_of_equal_rewards_stay_together_in_any_order(toy):
  """E0: the float32 sum of their squares depends on the order."""
  rng = np.random.default_rng(0)
  for _ in range(20):
    group = rng.choice([0.1, 0.3, 0.7, 0.9], 4)
    reward = [rng.permutation(group) for _ in range(4)]
    assert kept(toy, 0.25, reward) == [1, 1, 1, 1]


def test_several_rollouts_are_refused():
  """The message says what to set."""
  sets = ['model.value_head=True', 'rollout.max_rounds=1']
  validate(configuration.build('keydoor', 'starpo@filtered', sets))
  config = configuration.build('keydoor', 'starpo@filtered', sets[:1])
  with pytest.raises(ValueError, match='set rollout.max_rounds=1'):
    validate(config)
