"""The critic of completion rates."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

MASK = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1], [0, 1, 1]])
# The head after the last token of each step is 0, log 3, 9 and 9.
AFTER = np.array([[7, 7, 0], [7, np.log(3), 7], [7, 7, 9], [7, 7, 9]])
RATE = np.array([0.8, 0.5, 1.0, 0.1])


def loss_and_gradient(toy, after=AFTER, rate=RATE, **fields):
  """Four rows: the third ends with its step, the fourth weighs nothing."""
  traj = toy.trajectories(
    MASK,
    group_size=4,
    weight_B=np.array([1.0, 1.0, 1.0, 0.0]),
    extras={
      'candidate_value_B': np.asarray(rate, np.float32),
      'candidate_ends_B': np.array([0, 0, 1, 0], np.float32),
    },
  )
  piece = losses.CandidateValue(**fields)

  def value(x):
    return piece(LossContext({'values_after': x}, traj, jax.random.key(0)))[:2]

  (loss, metrics), gradient = jax.value_and_grad(value, has_aux=True)(
    jnp.asarray(after, jnp.float32)
  )
  return loss, np.asarray(gradient), metrics


def test_by_hand(toy):
  """log 2 and log 4 - .5 log 3: .693147 and .836988. Gradients are half of
  .5 - .8 and .75 - .5."""
  loss, gradient, metrics = loss_and_gradient(toy)
  np.testing.assert_allclose(loss, 0.765068, rtol=1e-5)
  expected = np.zeros((4, 3))
  expected[0, 2], expected[1, 1] = -0.15, 0.125
  np.testing.assert_allclose(gradient, expected, atol=1e-6)
  # (.3^2 + .25^2) / 2
  np.testing.assert_allclose(metrics['value/error'], 0.07625, rtol=1e-5)
  twice, _, _ = loss_and_gradient(toy, coef=2.0)
  np.testing.assert_allclose(twice, 2 * loss, rtol=1e-6)


def test_whole_rates_are_labels(toy):
  """E0: -log sigmoid(V) of successes, -log sigmoid(-V) of failures; beyond 0
  and 1 a reward counts as 0 and 1."""
  expected = (np.log(2) - np.log(0.25)) / 2
  for rate in ([1, 0, 0, 0], [3, -1, 0, 0]):
    np.testing.assert_allclose(
      loss_and_gradient(toy, rate=rate)[0], expected, rtol=1e-5
    )


def test_failures_are_successes_of_the_other_sign(toy):
  """E1: l(V, q) = l(-V, 1 - q)."""
  loss, gradient, _ = loss_and_gradient(toy)
  other, turned, _ = loss_and_gradient(toy, -AFTER, 1.0 - RATE)
  np.testing.assert_allclose(other, loss, rtol=1e-6)
  np.testing.assert_allclose(turned, -gradient, atol=1e-6)
