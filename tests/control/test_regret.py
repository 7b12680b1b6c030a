"""Regret-loss (C220)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import regret, sequence, training, worlds
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.pieces.roles import LossContext

ALTERNATING = jnp.array([[[1.0, 0], [0, 1], [1, 0], [0, 1]]])


def test_regret_by_hand():
  """E1: follow the leader 2, uniform 0, Hedge .5 .244919."""
  leader = jnp.array([[[1.0, 0], [0, 1], [1, 0], [0, 1]]])
  assert regret.regret(ALTERNATING, leader)[0] == 2
  assert regret.regret(ALTERNATING, jnp.full((1, 4, 2), 0.5))[0] == 0
  before = jnp.cumsum(ALTERNATING, axis=1) - ALTERNATING
  hedge = jax.nn.softmax(-0.5 * before)
  found = regret.regret(ALTERNATING, hedge)[0]
  np.testing.assert_allclose(found, 0.244919, rtol=1e-5)


@pytest.mark.parametrize(
  'k, expected', [(0, 1.133333), (1, 1.559865), (5, 1.992776), (50, 2.0)]
)
def test_soft_worst_by_hand(k, expected):
  """E1: from the mean to the worst of (.4, 1, 2)."""
  found = regret.soft_worst(jnp.array([0.4, 1.0, 2.0]), jnp.float32(k))
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_negative_regret_counts_as_none():
  """E0: h is not negative."""
  assert regret.soft_worst(jnp.array([-1.0, -2.0]), jnp.float32(0.0)) == 0


def context(loss_BTA, prob_BTA):
  world = worlds.Experts(steps=loss_BTA.shape[1])
  traj = regret.trajectories(world, loss_BTA)
  padded = jnp.pad(prob_BTA, ((0, 0), (1, 0), (0, 0)))
  return LossContext({'action_probs': padded}, traj)


def test_a_constant_changes_nothing():
  """E1: added to the losses of all actions of a step."""
  key = jax.random.key(0)
  loss = jax.random.uniform(key, (6, 5, 2))
  prob = jax.nn.softmax(jax.random.normal(key, (6, 5, 2)))
  shift = jax.random.uniform(jax.random.key(1), (6, 5, 1))
  piece = regret.RegretLoss(k=2.0)
  np.testing.assert_allclose(
    piece(context(loss + shift, prob)).value,
    piece(context(loss, prob)).value,
    rtol=1e-4,
  )


def test_the_policy_reads_past_losses_only():
  """E0: the input of a step has the losses of the step before."""
  world = worlds.Experts(steps=4)
  traj = regret.trajectories(world, ALTERNATING)
  np.testing.assert_array_equal(traj.inputs_BTF[0, 0, :2], 0)
  np.testing.assert_array_equal(traj.inputs_BTF[:, 1:4, :2], ALTERNATING[:, :3])
  np.testing.assert_array_equal(traj.extras[regret.LOSSES][:, 1:], ALTERNATING)


def test_losses_that_are_missing_are_named():
  traj = context(ALTERNATING, ALTERNATING).traj.replace(extras={})
  with pytest.raises((ValueError, KeyError), match=regret.LOSSES):
    regret.RegretLoss()(LossContext({'action_probs': ALTERNATING}, traj))


def test_its_gradient_lowers_regret():
  """A constant best action is found in a few updates, without labels."""
  world = worlds.Experts(steps=6)
  model = sequence.model_for(world, layers=1, width=16)
  params = sequence.init_params(world, model, jax.random.key(0))
  loss_BTA = jnp.zeros((4, 6, 2)).at[..., 0].set(1.0)

  def data(params, key):
    del params, key
    return regret.trajectories(world, loss_BTA)

  fit = training.fit(
    Forward(model=model),
    Method(losses=(regret.RegretLoss(),)),
    data,
    params,
    jax.random.key(0),
    OptimizerConfig(learning_rate=1e-2, total_steps=60),
  )
  loss_T = fit[1]['loss']
  assert abs(float(loss_T[0]) - 3) < 0.2 and loss_T[-1] < 0.3
