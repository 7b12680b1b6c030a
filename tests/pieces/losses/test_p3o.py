"""Pair losses of P3O by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

V1, V2 = losses.P3O(variant='separate'), losses.P3O(variant='joint')
REWARD = np.array([[1.0], [0.0]])


def evaluate(toy, loss, ratio, reward=REWARD, **fields):
  """(loss, gradient in logp) of one group of one-token rows."""
  old = np.full((len(ratio), 1), -1.0)
  traj = toy.trajectories(
    np.ones(old.shape),
    group_size=len(ratio),
    logp_old_BT=old,
    advantages_BT=reward,
    **fields,
  )

  def value(x):
    return loss(LossContext({'logp': x}, traj, jax.random.key(0))).value

  logp = jnp.asarray(old + np.log(ratio)[:, None], jnp.float32)
  value, gradient = jax.value_and_grad(value)(logp)
  return value, gradient[:, 0]


def test_separate_by_hand(toy):
  """w = (1.5, .9): c = (.9, -1.5). f = (min(1.35, 1.08), min(-1.35, -1.35)):
  loss -(1.08 - 1.35) / 2 = .135, gradient (0, 1.35 / 2)."""
  value, gradient = evaluate(toy, V1, [1.5, 0.9])
  np.testing.assert_allclose(value, 0.135, rtol=1e-4)
  np.testing.assert_allclose(gradient, [0, 0.675], rtol=1e-5)


def test_separate_clips_the_loser_below(toy):
  """w = (1, .7): .7 < .8 with c < 0 is held; the winner gets -.7 / 2."""
  _, gradient = evaluate(toy, V1, [1.0, 0.7])
  np.testing.assert_allclose(gradient, [-0.35, 0], rtol=1e-5)


def test_joint_by_hand(toy):
  """w = (1.2, .9): W = 1.08 inside: -1.08 / 2. w = (1.5, .9): W = 1.35 is
  beyond 1.2: nothing."""
  _, gradient = evaluate(toy, V2, [1.2, 0.9])
  np.testing.assert_allclose(gradient, [-0.54, 0.54], rtol=1e-5)
  _, gradient = evaluate(toy, V2, [1.5, 0.9])
  np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize('loss', [V1, V2])
def test_on_policy_it_is_rloo(toy, loss):
  """E1: (r_i - mean of the others) / G, for pairs and for groups of three."""
  _, gradient = evaluate(toy, loss, [1.0, 1.0])
  np.testing.assert_allclose(gradient, [-0.5, 0.5], rtol=1e-6)
  reward = np.array([[1.0], [0.0], [0.5]])
  _, gradient = evaluate(toy, loss, [1.0, 1.0, 1.0], reward)
  np.testing.assert_allclose(
    gradient, [-0.75 / 3, 0.75 / 3, 0], rtol=1e-5, atol=1e-7
  )


@pytest.mark.parametrize('loss', [V1, V2])
def test_constants_and_order_do_not_matter(toy, loss):
  """E1: r + 7, and the two rows exchanged."""
  _, base = evaluate(toy, loss, [1.1, 0.9])
  _, moved = evaluate(toy, loss, [1.1, 0.9], REWARD + 7)
  np.testing.assert_allclose(moved, base, rtol=1e-5)
  _, turned = evaluate(toy, loss, [0.9, 1.1], REWARD[::-1])
  np.testing.assert_allclose(turned[::-1], base, rtol=1e-5)


@pytest.mark.parametrize('loss', [V1, V2])
def test_equal_rewards_teach_nothing(toy, loss):
  """E0."""
  _, gradient = evaluate(toy, loss, [1.1, 0.9], 0 * REWARD + 1)
  np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize('loss', [V1, V2])
def test_dropped_rows_leave_the_pairs(toy, loss):
  """The third row neither pushes nor is pushed."""
  reward = np.array([[1.0], [0.0], [9.0]])
  weight = np.array([1.0, 1.0, 0.0])
  _, gradient = evaluate(toy, loss, [1.1, 0.9, 3.0], reward, weight_B=weight)
  _, pair = evaluate(toy, loss, [1.1, 0.9])
  np.testing.assert_allclose(gradient[:2], pair, rtol=1e-5)
  assert gradient[2] == 0
