"""Q-learning on tokens: the best action, and targets."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext
from rl_jax.pieces.statistics import BestActionValue, Chunk

# An episode of two turns of two tokens, 'a3' and 'b1', after a page each.
MASK = np.array([[1, 1, 0, 1, 1]])
BEST = np.array([[0.2, 0.5, 9.0, 0.8, 1.5]])
REWARD = np.array([[0.0, 0.33, 0.0, 0.0, 1.0]])


def best(logits, q_1, q_2, **fields):
  """The best value at one place; V = 7 does not count."""
  outputs = jnp.asarray([7.0, *q_1, *q_2], jnp.float32)

  def place(x):
    return jnp.asarray(x)[None, None]

  chunk = Chunk(
    logits_BCV=place(jnp.asarray(logits, jnp.float32)),
    token_BC=jnp.zeros((1, 1), jnp.int32),
    mask_BC=jnp.ones((1, 1)),
    group_tokens_NU=jnp.zeros((1, 1), jnp.int32),
    others={},
    values={'': place(outputs)},
  )
  return float(BestActionValue(**fields)(chunk)[0, 0])


def test_the_best_of_the_likely_tokens_by_hand():
  """E1: the smaller of both Q are 0.1, 0.6, 0.9; probabilities 5 : 4 : 1."""
  place = np.log([0.5, 0.4, 0.1]), [0.1, 0.7, 2.0], [0.3, 0.6, 0.9]
  assert best(*place) == pytest.approx(0.9, rel=1e-6)
  assert best(*place, least_percent=15) == pytest.approx(0.9, rel=1e-6)
  assert best(*place, least_percent=25) == pytest.approx(0.6, rel=1e-6)
  assert best(*place, least_percent=100) == pytest.approx(0.1, rel=1e-6)
  # A token that transforms have taken out is never the best.
  logits = [0.0, 0.0, -np.inf]
  assert best(logits, *place[1:]) == pytest.approx(0.6, rel=1e-6)


def test_a_shift_of_logits_changes_nothing():
  """E1."""
  logits, *values = [0.3, -1.0, 0.1], [1.0, 2.0, 3.0], [1.5, 2.5, 2.0]
  for least in (0, 50, 90):
    moved = [x + 5.0 for x in logits]
    expected = best(logits, *values, least_percent=least)
    assert best(moved, *values, least_percent=least) == expected


def targets(toy, reward=REWARD, best_BT=BEST, **fields):
  traj = toy.trajectories(
    MASK, group_size=1, extras={'best_action_value_targets': best_BT}
  )
  piece = credit.MaxTargets(**{'gamma': 0.9} | fields)
  return np.asarray(piece(CreditContext(jnp.asarray(reward), traj)).value)


def test_targets_by_hand(toy):
  """E1: 0.9 * 0.5, 0.33 + 0.9 * 0.8, 0.9 * 1.5, and the last reward."""
  expected = [[0.45, 1.05, 0.0, 1.35, 1.0]]
  np.testing.assert_allclose(targets(toy), expected, rtol=1e-6)
  half = targets(toy, gamma=0.5)
  np.testing.assert_allclose(half, [[0.25, 0.73, 0.0, 0.75, 1.0]], rtol=1e-6)
  # A reward of a row is that of its last token.
  row = targets(toy, reward=np.array([1.33]))
  np.testing.assert_allclose(row[0, -1], 1.33, rtol=1e-6)


def test_values_of_pages_do_not_count(toy):
  """E0: of what the environment says nothing is read."""
  other = BEST.copy()
  other[0, 2] = -np.inf
  np.testing.assert_array_equal(targets(toy, best_BT=other), targets(toy))


def test_with_values_of_the_policy_it_is_the_one_step_return(toy):
  """E1: LambdaReturn(lam=0)."""
  rows = toy.trajectories(MASK, group_size=1, values_BT=BEST)
  other = credit.LambdaReturn(gamma=0.9, lam=0.0)(
    CreditContext(jnp.asarray(REWARD), rows)
  ).value
  np.testing.assert_allclose(targets(toy), other, rtol=1e-6)
