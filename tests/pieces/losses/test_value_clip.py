"""The clipped value loss by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method, validate
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import LossContext

# V, V_old, target with clip .2:
#   .5, .1, .2: error .3^2 = .09; held at .3: .1^2. Larger .09, slope 2 * .3.
#   .5, .1, 1.: error .25; held at .3: .7^2 = .49, which is a constant.
#   .2, .1, .5: inside the clip, both .3^2; slope 2 * -.3.
#   .24, .1, .5: the same, but .1 + (.24 - .1) < .24 in float32. Not clipped.
VALUE = np.array([[0.5, 0.5, 0.2, 0.24]])
OLD, TARGET = np.full((1, 4), 0.1), np.array([[0.2, 1.0, 0.5, 0.5]])


def evaluate(toy, loss):
  """(loss, gradient, metrics) in the values."""
  traj = toy.trajectories(
    np.ones((1, 4)), group_size=1, values_BT=OLD, returns_BT=TARGET
  )
  values = jnp.asarray(VALUE, jnp.float32)
  key = jax.random.key(0)
  value, metrics, _ = loss(LossContext({'values': values}, traj, key))
  gradient = jax.grad(
    lambda v: loss(LossContext({'values': v}, traj, key)).value.sum()
  )(values)
  return value, gradient, metrics


def test_by_hand(toy):
  """Times the coefficient 1/2."""
  loss, gradient, metrics = evaluate(toy, losses.ValueClip())
  np.testing.assert_allclose(loss, [[0.045, 0.245, 0.045, 0.0338]], rtol=1e-5)
  np.testing.assert_allclose(gradient, [[0.3, 0.0, -0.3, -0.26]], rtol=1e-5)
  np.testing.assert_array_equal(metrics['value/clip_fraction'], [[0, 1, 0, 0]])


def test_coef_scales_and_a_wide_clip_is_the_squared_error(toy):
  """coef 1 and clip 10: (V - target)^2."""
  loss, _, _ = evaluate(toy, losses.ValueClip(coef=1.0, clip=10.0))
  np.testing.assert_allclose(loss, (VALUE - TARGET) ** 2, rtol=1e-5)


def test_targets_must_come_from_somewhere():
  """A method without value_target is refused; the error says what to add."""
  method = Method(
    losses=(losses.Reinforce(), losses.ValueClip()), aggregation=TokenMean()
  )
  with pytest.raises(ValueError, match='value_target'):
    validate(method, group_size=1, has_value_head=True)
