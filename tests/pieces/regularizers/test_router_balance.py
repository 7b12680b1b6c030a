"""The load-balancing loss of experts."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)
# Two rows of two tokens, of which one is masked; three experts, k = 2.
MASK = [[1.0, 1.0], [1.0, 0.0]]
TAKEN = np.array([[[1, 1, 0], [1, 0, 1]], [[1, 1, 0], [9, 9, 9]]], float)
PROBS = np.array(
  [[[0.5, 0.3, 0.2], [0.6, 0.1, 0.3]], [[0.4, 0.5, 0.1], [7, 7, 7]]]
)


def evaluate(toy, probs, taken, coef=1.0, **fields):
  """(loss, metrics) of one group of two."""
  traj = toy.trajectories(MASK, group_size=2, **fields)
  stats = {'router_probs': jnp.asarray(probs), 'router_taken': taken}
  piece = regularizers.RouterBalance(coef=coef)
  return piece(LossContext(stats, traj, KEY))[:2]


def test_by_hand(toy):
  """f = (1, 2/3, 1/3), P = (0.5, 0.3, 0.2): 3 (0.5 + 0.2 + 1/15) = 2.3.

  Expert 0 has 1 of 2 places, 1.5 times its share.
  """
  loss, metrics = evaluate(toy, PROBS, TAKEN, coef=0.5)
  np.testing.assert_allclose(loss, 0.5 * 2.3, rtol=1e-6)
  np.testing.assert_allclose(metrics['train/router_balance'], 2.3, rtol=1e-6)
  np.testing.assert_allclose(metrics['train/expert_load_max'], 1.5, rtol=1e-6)
  np.testing.assert_allclose(regularizers.RouterBalance().coef, 1e-3, rtol=1e-6)


def test_rows_that_are_not_trained_do_not_count(toy):
  """E0: weight 0 is as masked; of the first row only f = (1, 1/2, 1/2)."""
  loss, _ = evaluate(toy, PROBS, TAKEN, weight_B=np.array([1.0, 0.0]))
  np.testing.assert_allclose(loss, 3 * (0.55 + 0.1 + 0.125), rtol=1e-6)
  none, metrics = evaluate(toy, PROBS, TAKEN, weight_B=np.zeros(2))
  assert none == 0 and metrics['train/expert_load_max'] == 0


def test_equal_use_has_the_loss_k(toy):
  """E1: each of six experts takes a third of k = 2."""
  taken = np.full((2, 2, 6), 2 / 6)
  loss, metrics = evaluate(toy, np.full((2, 2, 6), 1 / 6), taken)
  np.testing.assert_allclose(loss, 2.0, rtol=1e-6)
  np.testing.assert_allclose(metrics['train/expert_load_max'], 1, rtol=1e-6)


def test_experts_have_no_order(toy):
  """E1."""
  order = [2, 0, 1]
  permuted = evaluate(toy, PROBS[..., order], TAKEN[..., order])
  np.testing.assert_allclose(
    permuted[0], evaluate(toy, PROBS, TAKEN)[0], rtol=1e-6
  )


def test_the_gradient_is_that_of_probabilities(toy):
  """coef E f_e / number of tokens; 0 where masked."""
  gradient = jax.grad(lambda p: evaluate(toy, p, TAKEN)[0])(jnp.asarray(PROBS))
  expected = np.array([1, 2 / 3, 1 / 3]) * 3 / 3
  np.testing.assert_allclose(gradient[0, 0], expected, rtol=1e-6)
  np.testing.assert_array_equal(gradient[1, 1], 0.0)
