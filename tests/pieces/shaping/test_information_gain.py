"""Rewards of what thoughts add to the likelihood of a text."""

import numpy as np
import pytest

from rl_jax.pieces import credit, row_inputs, shaping
from rl_jax.pieces.roles import CreditContext


def rows(toy, gains, plain=0.0):
  gains = np.asarray(gains)
  return toy.trajectories(
    np.ones((len(gains), 1)),
    group_size=len(gains),
    reward_B=np.full(len(gains), 9.0),
    extras={
      'target_logp_B': gains + plain,
      'plain_logp_B': np.full(len(gains), plain),
    },
  )


def shaped(traj, **fields):
  piece = shaping.InformationGain(**fields)
  return piece(CreditContext(traj.reward_B, traj)).value


def test_by_hand(toy):
  """E1: half of the differences; the reward before is replaced."""
  traj = rows(toy, [0.2, -0.4], plain=-1.5)
  np.testing.assert_allclose(shaped(traj, coef=0.5), [0.1, -0.2], rtol=1e-5)


def test_advantages_of_the_paper(toy):
  """E1: each less the mean of the others, G / (G - 1) (r - mean)."""
  gains = [0.2, 0.5, -0.1, 0.4]
  traj = rows(toy, gains)
  found = credit.LeaveOneOut()(CreditContext(shaped(traj), traj)).value
  expected = [-0.0666667, 0.3333333, -0.4666667, 0.2]
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_expected_gain_is_a_difference_of_cross_entropies(toy):
  """E1: over texts from p*, CE(p*, teacher) - CE(p*, reasoned)."""
  true, teacher = np.array([0.7, 0.3]), np.array([0.5, 0.5])
  reasoned = np.array([0.6, 0.4])
  traj = rows(toy, [0.0, 0.0]).replace(
    extras={'target_logp_B': np.log(reasoned), 'plain_logp_B': np.log(teacher)}
  )
  expected = -(true * np.log(teacher)).sum() + (true * np.log(reasoned)).sum()
  np.testing.assert_allclose(true @ shaped(traj), expected, rtol=1e-5)


def test_what_both_add_changes_nothing(toy):
  """E1: a text that is as unlikely for both."""
  gains = [0.2, 0.5, -0.1]
  np.testing.assert_allclose(
    shaped(rows(toy, gains, plain=-3.0)), shaped(rows(toy, gains)), rtol=1e-4
  )


def test_missing_log_probs_are_named(toy):
  traj = rows(toy, [0.0]).replace(extras={})
  with pytest.raises(row_inputs.MissingInputError, match='target_logp_B'):
    shaped(traj)
