"""PROTECTED: lists of policies."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control import discovery


def test_gap_by_hand():
  """E0: the third policy has the best worst case, and is not added."""
  known = jnp.array([[5.0, 1], [1, 4]])
  assert discovery.gap(jnp.array([2.5, 2.5]), known) == -1.5
  assert discovery.gap(known[0], known) == 0
  assert discovery.gap(jnp.array([0.0, 4.5]), known) == 0.5


def test_exact_return_is_that_of_the_world():
  """E1: of a line of three cells with the goal at its end."""
  kernel = np.zeros((3, 2, 3))
  for s in range(3):
    kernel[s, 0, max(s - 1, 0)] = kernel[s, 1, min(s + 1, 2)] = 1
  reward = np.zeros((3, 2))
  reward[1, 1] = reward[2, 1] = 1
  start = np.array([1.0, 0, 0])
  evaluate = discovery.exact_return(kernel, reward, start, 0.9)
  right = jnp.tile(jnp.array([0.0, 1.0]), (3, 1))
  np.testing.assert_allclose(evaluate(right), 0.9, rtol=1e-5)
  np.testing.assert_allclose(evaluate(right[:, ::-1]), 0.0, atol=1e-6)


def test_attack_moves_what_is_seen():
  """E0: an observation of another cell takes its action."""
  policy = jnp.array([[1.0, 0], [0, 1]])
  swap = jnp.array([[0.0, 1], [1, 0]])
  np.testing.assert_array_equal(discovery.attacked(policy, swap), policy[::-1])
  np.testing.assert_array_equal(discovery.attacked(policy, jnp.eye(2)), policy)


def test_a_list_is_found_where_no_policy_is_best():
  """Two attacks want opposite actions: a mixture first, then both pure ones."""

  def evaluate(prob_SA, attack):
    return (prob_SA[0] * attack).sum()

  attacks = jnp.array([[1.0, 0.0], [0.0, 1.0]])
  start = jnp.array([[0.1, 0.0]])
  found = discovery.discover(
    evaluate, attacks, start, most=5, steps=200, rate=0.5
  )
  probs = [np.array(jax.nn.softmax(x)[0]) for x in found]
  assert len(found) == 3 and abs(probs[0][0] - 0.5) < 0.2
  assert {int(p.argmax()) for p in probs[1:]} == {0, 1}
  assert min(p.max() for p in probs[1:]) > 0.95
