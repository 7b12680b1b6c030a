"""Tokens before a cut train the policy, those after it the values."""

import numpy as np

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext


def evaluate(toy, trains, guided=(1.0, 1.0, 0.0), prefix=(1, 0, 2)):
  traj = toy.trajectories(
    np.ones((3, 3)),
    group_size=3,
    extras={
      'prefix_B': np.array(prefix),
      'finished_by_guide_B': np.array(guided),
    },
  )
  return weights.GuidedTokens(trains=trains)(LossContext({}, traj)).value


def test_by_hand(toy):
  """The third row was not finished by the guide."""
  expected = [[1, 0, 0], [0, 0, 0], [1, 1, 1]]
  np.testing.assert_array_equal(evaluate(toy, 'policy'), expected)
  expected = [[0, 1, 1], [1, 1, 1], [1, 1, 1]]
  np.testing.assert_array_equal(evaluate(toy, 'value'), expected)


def test_both_add_up_to_all_tokens(toy):
  """E0: on rows that a guide has finished."""
  total = evaluate(toy, 'policy')[:2] + evaluate(toy, 'value')[:2]
  np.testing.assert_array_equal(total, 1.0)


def test_without_a_guide_nothing_changes(toy):
  """E0: wherever the cuts are."""
  for trains in ('policy', 'value'):
    none = evaluate(toy, trains, (0.0,) * 3)
    np.testing.assert_array_equal(none, 1.0)


def test_roles():
  assert weights.GuidedTokens(trains='value').weighs == ('value',)
  assert 'policy' in weights.GuidedTokens().weighs
