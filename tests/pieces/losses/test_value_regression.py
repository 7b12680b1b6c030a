"""Squared errors of several outputs of the value head."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method, validate
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import LossContext

VALUE = np.array([[[0.5, 1.0], [0.0, 2.0]]])
TARGET = np.array([[[0.0, 1.5], [0.0, 1.0]]])


def evaluate(toy, **fields):
  """The losses [1, 2] and metrics of two tokens."""
  traj = toy.trajectories(np.ones((1, 2)), group_size=1, returns_BTH=TARGET)
  stats = {'value_heads': jnp.asarray(VALUE, jnp.float32)}
  return losses.ValueRegression(**fields)(
    LossContext(stats, traj, jax.random.key(0))
  )[:2]


def test_by_hand(toy):
  """.5 * .25 + .2 * .25 and .2 * 1."""
  loss, metrics = evaluate(toy, coefs=(0.5, 0.2))
  np.testing.assert_allclose(loss, [[0.175, 0.2]], rtol=1e-6)
  np.testing.assert_allclose(metrics['value/error_1'], [[0.25, 1.0]])


def test_without_the_second_it_is_the_value_loss(toy):
  """E1: ValueClip whose clip is never reached, with half of the error."""
  loss, _ = evaluate(toy, coefs=(0.5, 0.0))
  traj = toy.trajectories(
    np.ones((1, 2)),
    group_size=1,
    values_BT=VALUE[..., 0],
    returns_BT=TARGET[..., 0],
  )
  stats = {'values': jnp.asarray(VALUE[..., 0], jnp.float32)}
  one = losses.ValueClip(coef=0.5)(
    LossContext(stats, traj, jax.random.key(0))
  ).value
  np.testing.assert_allclose(loss, one, rtol=1e-6)


def test_outputs_can_be_renamed(toy):
  """E1: the order of outputs does not matter."""
  loss, _ = evaluate(toy, coefs=(0.5, 0.2))
  flipped = toy.trajectories(
    np.ones((1, 2)), group_size=1, returns_BTH=TARGET[..., ::-1]
  )
  stats = {'value_heads': jnp.asarray(VALUE[..., ::-1], jnp.float32)}
  piece = losses.ValueRegression(coefs=(0.2, 0.5))
  found = piece(LossContext(stats, flipped, jax.random.key(0))).value
  np.testing.assert_allclose(found, loss, rtol=1e-6)


def test_targets_must_have_as_many_outputs():
  """The message says how many; a negative coefficient is refused."""
  method = Method(
    losses=(losses.PPOClip(), losses.ValueRegression(coefs=(1.0, 1.0))),
    value_target=credit.ComponentReturns(),
    aggregation=TokenMean(),
  )
  with pytest.raises(ValueError, match='value_target with 2 outputs'):
    validate(method, group_size=1, has_value_head=True, num_values=3)
  with pytest.raises(ValueError, match='ValueRegression.coefs'):
    losses.ValueRegression(coefs=(-1.0,))
