"""The squared errors of both action values of the drawn tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags.configuration import load_method
from rl_jax.pieces import losses
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import LossContext

# V, Q_1 and Q_2 of the drawn token, at two places.
VALUES = np.array([[[9.0, 0.5, 1.0], [9.0, 1.0, 1.25]]])
TARGET = np.array([[0.2, 1.0]])


def evaluate(toy, values=VALUES):
  """The loss [1, 2]."""
  traj = toy.trajectories(np.ones((1, 2)), group_size=1, returns_BT=TARGET)
  stats = {'action_values': jnp.asarray(values, jnp.float32)}
  context = LossContext(stats, traj, jax.random.key(0))
  return losses.ActionRegression()(context).value


def test_by_hand(toy):
  """E1: (0.5 - 0.2)^2 + (1 - 0.2)^2 and 0 + 0.25^2; V does not count."""
  np.testing.assert_allclose(evaluate(toy), [[0.73, 0.0625]], rtol=1e-6)
  other = VALUES.copy()
  other[..., 0] = -3.0
  np.testing.assert_allclose(evaluate(toy, other), evaluate(toy), rtol=1e-6)


def test_of_one_value_it_is_twice_the_value_loss(toy):
  """E1: ValueClip whose clip is never reached has one of the two errors."""
  own = VALUES[..., 1]
  traj = toy.trajectories(
    np.ones((1, 2)), group_size=1, values_BT=own, returns_BT=TARGET
  )
  stats = {'values': jnp.asarray(own, jnp.float32)}
  context = LossContext(stats, traj, jax.random.key(0))
  one = losses.ValueClip(coef=1.0)(context).value
  both = np.stack([own] * 3, axis=-1)
  np.testing.assert_allclose(evaluate(toy, both), 2 * one, rtol=1e-6)


def test_both_values_are_alike(toy):
  """E1: the order of Q_1 and Q_2 does not matter."""
  turned = VALUES[..., [0, 2, 1]]
  np.testing.assert_allclose(evaluate(toy, turned), evaluate(toy), rtol=1e-6)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'value_target': None}, r'needs method\.value_target'),
    ({'logits': ()}, r'needs ActionValueTilt\(\) in method\.logits'),
  ],
)
def test_what_is_missing_is_named(fields, message):
  method = load_method('qweb').replace(**fields)
  with pytest.raises(ValueError, match=message):
    method.losses[0].check(CheckContext(method=method))
