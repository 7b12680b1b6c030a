"""CoS(M+O)S: the value of a step."""

import numpy as np
import pytest

from rl_jax.rollouts.wrappers import StepCuriosity


def test_by_hand():
  """1 - (.2 / .5)^2 - 2 (1 - .25) = -.66."""
  assert StepCuriosity()(0.25, 0.5) == pytest.approx(-0.66)


def test_moderate_surprise_is_best():
  """Concave, the maximum at the target, equal on both sides of it."""
  piece = StepCuriosity(target=0.7)
  surprisal = np.linspace(0.0, 1.4, 29)
  values = piece(1.0, surprisal)
  assert values.argmax() == 14 and values[14] == 1.0
  assert (np.diff(values, 2) < 0).all()
  np.testing.assert_allclose(values, values[::-1], atol=1e-12)


def test_without_curiosity_the_reward_is_the_value():
  """A width above all surprisals: up to a constant, MCTS-DPO's search."""
  piece = StepCuriosity(width=1e9, incoherence=1.0)
  reward = np.array([0.0, 0.25, 1.0])
  np.testing.assert_allclose(piece(reward, 0.4), reward, atol=1e-12)
