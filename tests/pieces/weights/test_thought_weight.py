"""Weights inside and outside of a thought."""

import numpy as np
import pytest

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext

THINK = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


def evaluate(toy, think=THINK, **fields):
  """The weights of two rows of three tokens."""
  traj = toy.trajectories(
    np.ones((2, 3)), group_size=2, extras={'think_mask_BT': think}
  )
  return weights.ThoughtWeight(**fields)(LossContext({}, traj)).value


def test_by_hand(toy):
  found = evaluate(toy, inside=0.25, outside=2.0)
  np.testing.assert_array_equal(found, [[0.25, 0.25, 2], [2, 0.25, 2]])


def test_the_default_changes_nothing(toy):
  """E0."""
  np.testing.assert_array_equal(evaluate(toy), 1.0)


def test_the_parts_add_up_to_all_tokens(toy):
  """E0."""
  answer, thought = evaluate(toy, inside=0.0), evaluate(toy, outside=0.0)
  np.testing.assert_array_equal(answer + thought, 1.0)
  np.testing.assert_array_equal(thought, THINK)


def test_a_missing_mask_and_a_wrong_weight_are_named(toy):
  traj = toy.trajectories(np.ones((2, 3)), group_size=2)
  with pytest.raises(ValueError, match='think_mask_BT'):
    weights.ThoughtWeight()(LossContext({}, traj))
  with pytest.raises(ValueError, match='ThoughtWeight.inside = -1'):
    weights.ThoughtWeight(inside=-1.0)
