"""Vision-R1: thresholds on several matched boxes, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext

NONE = -2.0


def rewards(toy, overlaps, count, rollouts=0.0, reward=0.0, **fields):
  """The reward of rows with these overlaps."""
  overlaps = np.asarray(overlaps, np.float32)
  B = len(overlaps)
  extras = {f'giou_{m}_B': jnp.asarray(overlaps[:, m]) for m in range(3)}
  extras['num_boxes_B'] = jnp.full(B, count, jnp.float32)
  traj = toy.trajectories(np.ones((B, 2)), group_size=B, extras=extras)
  piece = shaping.MatchedOverlapStages(**fields)
  state = {'rollouts': jnp.asarray(rollouts)}
  out = piece(CreditContext(jnp.full(B, reward), traj, state))
  return np.asarray(out.value), float(out.state['rollouts'])


def test_both_stages_by_hand(toy):
  """q = .4, .6, .8 of three: precision 1.6 / 3 and recall 2 / 3, then
  .8 / 3 and 0, as a third of the boxes is below one half.
  """
  q = [[0.4, 0.6, 0.8]]
  found, rollouts = rewards(toy, q, 3, rollouts=1499.0)
  np.testing.assert_allclose(found, [1.6 / 3 + 2 / 3], rtol=1e-6)
  assert rollouts == 1500.0
  found, _ = rewards(toy, q, 3, rollouts=1500.0)
  np.testing.assert_allclose(found, [0.8 / 3], rtol=1e-6)


def test_boxes_that_are_missing_cost_recall_only(toy):
  """One perfect box of two: precision 1, recall T(1/2) = 1/2; of none 0."""
  found, _ = rewards(toy, [[1.0, NONE, NONE], [NONE] * 3], 2, reward=1.0)
  np.testing.assert_allclose(found, [2.5, 1.0], rtol=1e-6)


@pytest.mark.parametrize('rollouts', [0.0, 2000.0])
def test_of_one_box_it_is_overlap_stages(toy, rollouts):
  """E0: the reduction, where the overlap is not the threshold itself."""
  q = np.array([0.2, 0.6, 0.8, 0.95], np.float32)
  found, _ = rewards(
    toy, np.stack([q, [NONE] * 4, [NONE] * 4], 1), 1, rollouts=rollouts
  )
  traj = toy.trajectories(
    np.ones((4, 2)), group_size=4, extras={'iou_B': jnp.asarray(q)}
  )
  state = {'rollouts': jnp.asarray(rollouts)}
  other = shaping.OverlapStages()(CreditContext(jnp.zeros(4), traj, state))
  np.testing.assert_array_equal(found, other.value)


def test_the_order_of_the_boxes_changes_nothing(toy):
  """E1."""
  one, _ = rewards(toy, [[0.6, NONE, 0.8]], 3)
  other, _ = rewards(toy, [[0.8, 0.6, NONE]], 3)
  np.testing.assert_allclose(one, other, rtol=1e-6)
