"""T-PPO's value loss on finished responses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import LossContext

VALUE = jnp.array([[0.5, 1.0, 9.0], [0.2, 0.4, 0.0]])


def rollout(toy, waits):
  """Two rows; the last column of row 0 is padding; all targets are 1."""
  return toy.trajectories(
    np.array([[1, 1, 0], [1, 1, 1]]),
    group_size=2,
    returns_BT=np.ones((2, 3)),
    extras={'waits_B': np.array(waits, float)},
  )


def loss_and_gradient(toy, waits, **fields):
  """The scalar and its gradient in the values."""
  piece, traj = losses.FinishedValue(**fields), rollout(toy, waits)

  def value(x):
    return piece(LossContext({'values': x}, traj, jax.random.key(0))).value

  return jax.value_and_grad(value)(VALUE)


def test_by_hand(toy):
  """Row 0 only: (.25 + 0) / 2 / 2 = .0625, gradient (V - 1) / 2."""
  loss, gradient = loss_and_gradient(toy, [0, 1])
  np.testing.assert_allclose(loss, 0.0625, rtol=1e-6)
  np.testing.assert_allclose(gradient, [[-0.25, 0, 0], [0, 0, 0]], rtol=1e-6)
  loss, _ = loss_and_gradient(toy, [0, 1], coef=2.0)
  np.testing.assert_allclose(loss, 0.25, rtol=1e-6)


def test_all_ended_is_the_token_mean(toy):
  """E1: (.25 + 0 + .64 + .36 + 1) / 5 / 2; if all wait it is 0."""
  loss, _ = loss_and_gradient(toy, [0, 0])
  np.testing.assert_allclose(loss, 0.225, rtol=1e-6)
  loss, gradient = loss_and_gradient(toy, [1, 1])
  assert loss == 0 and (gradient == 0).all()


def test_the_token_limit_ends_a_response(toy):
  """E0: a row that was cut at the limit, and waits for nothing, counts."""
  expected, _ = loss_and_gradient(toy, [0, 0])
  traj = rollout(toy, [0, 0]).replace(finished_B=jnp.array([True, False]))
  for rows in (traj, traj.replace(extras={})):
    found = losses.FinishedValue()(
      LossContext({'values': VALUE}, rows, jax.random.key(0))
    ).value
    assert found == expected


def test_a_target_is_needed():
  """The error says which piece to add."""
  with pytest.raises(ValueError, match='LambdaReturn'):
    losses.FinishedValue().check(CheckContext(method=Method()))
