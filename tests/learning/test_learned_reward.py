"""Scores of value heads, in parts and without logits."""

import jax
import numpy as np
import pytest

from rl_jax.learning.final_values import final_values
from rl_jax.learning.learned_reward import (
  Scorer,
  learned_rewards,
  over_steps,
  step_ends,
)
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
  found = score((Scorer(source, parts),), {'a': params}, traj)
  np.testing.assert_allclose(found['a'], (expected - 1) / 2, atol=1e-5)
  assert np.ptp(expected) > 0.1


def test_heads_are_summed_with_weights(tiny):
  """E1: of each only; (1, 0) is the first head, as without weights."""
  traj, params = tiny.rollout(), dict(tiny.params())
  rng = np.random.default_rng(0)
  width = params['value_head']['w'].shape[-1]
  params['value_head'] = {
    'w': rng.normal(size=(2, width)).astype(np.float32),
    'b': np.array([0.5, -1.0], np.float32),
  }
  score = jax.jit(final_values, static_argnums=(0, 3))
  forward = Forward(model=tiny.CFG)

  def of(*weights):
    return np.asarray(score(forward, params, traj, weights))

  first, second = of(1.0, 0.0), of(0.0, 1.0)
  np.testing.assert_allclose(of(), first, atol=1e-5)
  np.testing.assert_allclose(of(0.25, 2.0), first / 4 + 2 * second, atol=1e-4)
  assert np.abs(first - second).max() > 0.1
  with pytest.raises(ValueError, match='head_weights, or steps'):
    RewardModel(path='x', head_weights=(1.0,), steps='min')
  with pytest.raises(ValueError, match="step_ends = \\(''"):
    RewardModel(path='x', steps='min', step_ends=('',))


def test_steps_by_hand(toy):
  """Steps of 0.9, 0.4, 0.6, 0.2 end with token 7; the rest does not count."""

  def logit(p):
    return np.log(p / (1 - p))

  p = np.array([[0.9, 0.4, 0.6, 0.2, 0.01]])
  response = np.array([[7, 7, 7, 7, 1]])
  traj = toy.trajectories(np.ones((1, 5)), group_size=1, response_BT=response)
  values = np.float32(logit(p))

  def score(traj, how):
    return over_steps(values, step_ends(traj, np.array([7])), how)[0]

  for how, expected in (('product', 0.0432), ('min', 0.2), ('last', 0.2)):
    np.testing.assert_allclose(score(traj, how), expected, rtol=1e-5)
  whole = traj.replace(response_BT=np.zeros((1, 5), np.int32))
  for how in ('product', 'min', 'last'):  # one step, which the last token ends
    np.testing.assert_allclose(score(whole, how), 0.01, rtol=1e-5)
