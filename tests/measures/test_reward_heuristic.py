"""A value head as a heuristic: the scores of the loop, on rows of a search."""

import dataclasses

import jax
import numpy as np
import pytest

from rl_jax.learning.final_values import final_values
from rl_jax.learning.statistics import Forward
from rl_jax.measures.reward_heuristic import prompts, reward_heuristic


@pytest.mark.slow
def test_scores_are_those_of_reward_models(tiny):
  """E1: of complete rows; tokens after the length do not count."""
  traj, params = tiny.rollout(group_size=1), tiny.params()
  expected = final_values(Forward(model=tiny.CFG), params, traj)
  heuristic = jax.jit(reward_heuristic(tiny.CFG, params))
  found = heuristic(prompts(traj), traj.response_BT, traj.length_B)
  np.testing.assert_allclose(found, expected, atol=1e-5)
  assert np.ptp(expected) > 0.1
  behind_BT = np.where(traj.mask_BT > 0, traj.response_BT, 1)
  again = heuristic(prompts(traj), behind_BT, traj.length_B)
  np.testing.assert_allclose(again, found, atol=1e-6)


def test_a_model_without_a_head_is_refused(tiny):
  """Before anything is traced."""
  plain = dataclasses.replace(tiny.CFG, value_head=False)
  with pytest.raises(ValueError, match='no value head'):
    reward_heuristic(plain, {})
