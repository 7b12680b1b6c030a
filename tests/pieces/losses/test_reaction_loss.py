"""The probability of reactions, from single labelled responses."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

VALUES = np.array([[0.3, 1.0], [0.1, -0.5], [0.2, 2.0]])


def evaluate(toy, label=(1.0, 0.0, -1.0), values=VALUES, **fields):
  traj = toy.trajectories(
    np.ones((3, 2)), group_size=1, extras={'chosen_B': np.asarray(label)}
  )
  piece = losses.ReactionLoss(**fields)
  return piece(LossContext({'values_after': values}, traj))


def softplus(x):
  return np.log1p(np.exp(x))


def test_by_hand(toy):
  """E1: values 1 and -.5 after the last token; the third row has no label."""
  found = evaluate(toy)
  expected = (softplus(-1.0) + softplus(-0.5)) / 2
  np.testing.assert_allclose(found.value, expected, rtol=1e-5)
  np.testing.assert_allclose(found.metrics['reaction/share'], 0.5)


def test_a_weight_of_reactions_leaves_the_probability(toy):
  """E1: at v = logit(share) the gradient is 0 for every weight.

  Of four rows one has a reaction: v = log(1 / 3).
  """
  label = np.array([1.0, 0.0, 0.0, 0.0])
  traj = toy.trajectories(
    np.ones((4, 1)), group_size=1, extras={'chosen_B': label}
  )

  def loss(v, positive):
    stats = {'values_after': jnp.full((4, 1), v)}
    piece = losses.ReactionLoss(positive=positive)
    return piece(LossContext(stats, traj)).value

  for positive in (1.0, 3.0, 10.0):
    slope = jax.grad(loss)(jnp.log(1 / 3), positive)
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_weight_one_is_cross_entropy(toy):
  """E1, and a weight of 2 counts the reaction twice at a shifted logit."""
  found = evaluate(toy, positive=2.0).value
  shift = np.log(2.0)
  expected = (2 * softplus(-1.0 - shift) + softplus(-0.5 + shift)) / 2
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rows_without_labels_change_nothing(toy):
  """E0."""
  other = VALUES.copy()
  other[2] = -9.0
  np.testing.assert_array_equal(
    evaluate(toy).value, evaluate(toy, values=other).value
  )
