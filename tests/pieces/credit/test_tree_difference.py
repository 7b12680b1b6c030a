"""Credit of trees: edges by hand, and what they are without branches."""

import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

NODES, ENDS = np.array([[0], [0], [1], [1]]), np.array([[1], [1], [2], [2]])


def advantages(toy, reward, nodes=NODES, ends=ENDS, scale='none', valid=None):
  """Advantages of one group with three tokens a row."""
  reward = np.asarray(reward, np.float32)
  traj = toy.trajectories(
    np.ones((len(reward), 3)),
    group_size=len(reward),
    reward_B=reward,
    valid_B=np.ones(len(reward)) if valid is None else np.asarray(valid),
    extras={'node_BK': nodes, 'edge_end_BK': ends},
  )
  return np.asarray(
    credit.TreeDifference(scale=scale)(CreditContext(traj.reward_B, traj)).value
  )


def test_by_hand(toy):
  """Leaves 1, 0 and 1, 1: nodes .5 and 1, root .75; edges -.25, .25 above and
  .5, -.5, 0, 0 below."""
  np.testing.assert_allclose(
    advantages(toy, [1, 0, 1, 1]),
    [
      [-0.25, 0.5, 0.5],
      [-0.25, -0.5, -0.5],
      [0.25, 0.25, 0.0],
      [0.25, 0.25, 0.0],
    ],
    rtol=1e-6,
  )


def test_scaled_by_hand(toy):
  """Deviations: .25 at the root, .5 at the first node, 0 at the second."""
  np.testing.assert_allclose(
    advantages(toy, [1, 0, 1, 1], scale='std')[:, [0, 2]],
    [[-1, 1], [-1, -1], [1, 0], [1, 0]],
    rtol=1e-6,
  )


def test_children_add_up_to_nothing(toy):
  """At every node, and each path to R - V(prompt)."""
  reward = np.array([0.3, 1.0, -2.0, 0.5])
  found = advantages(toy, reward)
  assert abs(found[:, 0].sum()) < 1e-6
  np.testing.assert_allclose(found[[0, 2], 2] + found[[1, 3], 2], 0, atol=1e-6)
  path = found[:, 0] + found[:, 2]
  np.testing.assert_allclose(path, reward - reward.mean(), rtol=1e-5)


@pytest.mark.parametrize('scale', ['none', 'std'])
@pytest.mark.parametrize('other', [0.1, 0.7])
def test_equal_rewards_have_no_advantage(toy, scale, other):
  """Exactly: means of 2, 3 and 7 times .1 differ in float32. Beside them a
  node of other rewards."""
  nodes = np.array([[0, 0]] * 3 + [[0, 1]] * 4 + [[1, 2]] * 7)
  ends = np.array([[1, 2]] * 14)
  reward = [0.1] * 7 + [other] * 7
  valid = np.ones(14)
  valid[2] = 0.0
  found = advantages(toy, reward, nodes, ends, scale=scale, valid=valid)
  live = found[valid > 0]
  assert (live[:, 1:] == 0).all()
  assert (live[:, 0] == 0).all() == (other == 0.1)


@pytest.mark.parametrize('scale', ['none', 'std'])
def test_without_nodes_it_is_the_group(toy, scale):
  """R - mean, divided by the population's deviation or not: GRPO."""
  reward, none = np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.zeros((5, 0), int)
  expected = reward - reward.mean()
  if scale == 'std':
    expected = expected / reward.std()
  found = advantages(toy, reward, none, none, scale)
  np.testing.assert_allclose(found, expected[:, None] * np.ones(3), rtol=1e-5)


def test_invalid_leaves_are_in_no_value(toy):
  """The last leaf is not known: node 1 has the value of the other one."""
  found = advantages(toy, [1, 0, 1, np.nan], valid=[1, 1, 1, 0])
  np.testing.assert_allclose(found[:3, 0], [-1 / 6, -1 / 6, 1 / 3], rtol=1e-5)
  np.testing.assert_allclose(found[2, 2], 0, atol=1e-6)
  assert np.isfinite(found).all()
