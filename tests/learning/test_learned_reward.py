"""Scores of value heads, in parts and without logits."""

import jax
import numpy as np

from rl_jax.learning.learned_reward import learned_rewards
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models.reward_source import RewardModel


def test_scores_are_those_of_the_update(tiny):
  """E1: in microbatches and without logits, at the last token; scaled."""
  traj, params = tiny.rollout(), tiny.params()
  whole = Forward(model=tiny.CFG)
  compute = jax.jit(token_statistics, static_argnums=(0, 3))
  values = compute(whole, params, traj, ('values_after',))['values_after']
  last = np.asarray(traj.length_B)[:, None] - 1
  expected = np.take_along_axis(np.asarray(values), last, 1)[:, 0]
  source = RewardModel(path='', name='a', center=1.0, scale=2.0)
  parts = Forward(model=tiny.CFG, microbatches=2, group_rows=2)
  score = jax.jit(learned_rewards, static_argnums=0)
  found = score(((source, parts),), {'a': params}, traj)
  np.testing.assert_allclose(found['a'], (expected - 1) / 2, atol=1e-5)
  assert np.ptp(expected) > 0.1
