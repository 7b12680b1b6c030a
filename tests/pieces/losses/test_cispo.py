"""Truncated weights of CISPO by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

RATIO = np.array([[1.5, 0.5, 1.1, 3.0]])
ADV = np.array([[1.0, -1.0, 2.0, -1.0]])
LOGP = np.log(np.array([[0.3, 0.3, 0.3, 0.3]]))


def coefficient(toy, loss, ratio=RATIO, adv=ADV):
  """-dl/dlogp."""
  return toy.coefficient(
    loss, LOGP, logp_old_BT=LOGP - np.log(ratio), advantages_BT=adv
  )


def test_by_hand(toy):
  """Weights 1.28, .8, 1.1, 1.28; -1.28 log .3 = 1.541085 for the first."""
  loss = losses.CISPO()
  traj = toy.trajectories(
    np.ones((1, 4)),
    group_size=1,
    logp_old_BT=LOGP - np.log(RATIO),
    advantages_BT=ADV,
  )
  value, metrics, _ = loss(
    LossContext(
      {'logp': jnp.asarray(LOGP, jnp.float32)}, traj, jax.random.key(0)
    )
  )
  np.testing.assert_allclose(value[0, 0], 1.541085, rtol=1e-5)
  np.testing.assert_array_equal(metrics['policy/clip_fraction'], [[1, 1, 0, 1]])
  np.testing.assert_allclose(
    coefficient(toy, loss), [[1.28, -0.8, 2.2, -1.28]], rtol=1e-5
  )


def test_on_policy_it_is_reinforce(toy):
  """E1: ratio 1 has weight 1."""
  np.testing.assert_allclose(
    coefficient(toy, losses.CISPO(), np.ones((1, 4))), ADV, rtol=1e-6
  )


def test_without_limits_it_is_the_surrogate(toy):
  """clip_low 1 and a huge clip_high: A times the ratio."""
  loose = losses.CISPO(clip_low=1.0, clip_high=100.0)
  np.testing.assert_allclose(coefficient(toy, loose), ADV * RATIO, rtol=1e-5)


def test_no_gradient_is_lost(toy):
  """Unlike PPO, whatever ratio and sign, the coefficient is not 0."""
  ratio = np.array([[1e-3, 1e-3, 50.0, 50.0]])
  adv = np.array([[1.0, -1.0, 1.0, -1.0]])
  assert (coefficient(toy, losses.CISPO(), ratio, adv) != 0).all()
