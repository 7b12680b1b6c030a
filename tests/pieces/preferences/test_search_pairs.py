"""Pairs of a tree search, and a link that is as sure as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags.configuration import load_method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import CreditContext, LossContext

ARRAYS = [jnp.array([[x]]) for x in (1.5, 0.5)]


def loss(confidence, win=ARRAYS[0], lose=ARRAYS[1]):
  """The loss of one pair."""
  value = pref.ConfidentSigmoid()(win, lose, jnp.array([[confidence]]))
  return float(value[0, 0])


def softplus(x):
  return np.log1p(np.exp(x))


def test_link_by_hand():
  """Visits 8 and 2: confidence .8, e .2, d = 1."""
  expected = 0.8 * softplus(-1.0) + 0.2 * softplus(1.0)
  assert loss(0.8) == pytest.approx(expected, rel=1e-6)
  assert loss(1 / 3) == pytest.approx(loss(0.5), rel=1e-6)  # e <= 1/2


def test_equal_visits_have_no_slope():
  """e = 1/2: symmetric, so the gradient is 0 at d = 0."""
  zero = jnp.zeros((1, 1))
  slope = jax.grad(
    lambda d: pref.ConfidentSigmoid()(d, zero, zero + 0.5)[0, 0]
  )(zero)
  assert float(slope[0, 0]) == 0.0
  assert loss(0.5) == pytest.approx(loss(0.5, *reversed(ARRAYS)), rel=1e-6)


def test_sure_labels_are_those_of_dpo():
  """E0: confidence 1 is the sigmoid."""
  plain = pref.Sigmoid()(*ARRAYS, jnp.zeros((1, 1)))
  assert loss(1.0) == float(plain[0, 0])


def test_edges_by_hand(toy):
  """Row 2 is preferred to row 0 of its group, row 4 to row 7 of its group."""
  traj = toy.trajectories(
    np.ones((8, 2)),
    group_size=4,
    extras={
      'search_pair_B': np.array([-1, 0, 1, 0, 1, 0, 0, -1]),
      'confidence_B': np.array([1, 1, 0.8, 1, 0.5, 1, 1, 1]),
    },
  )
  edges = pref.SearchPairs()(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_array_equal(edges.weight_NE, [[0, 0, 1, 0], [1, 0, 0, 0]])
  np.testing.assert_array_equal(edges.win_NE, [[0, 1, 2, 3]] * 2)
  assert edges.lose_NE[0, 2] == 0 and edges.lose_NE[1, 0] == 3
  assert edges.confidence_NE[0, 2] == np.float32(0.8)
  np.testing.assert_array_equal(edges.margin_NE, 0.0)  # no target


# Log-ratios of two pairs of steps, as sure as searches were of them.
RATIOS, SURE = (-1.76421, -2.07409), (0.8, 0.25)


def losses_of_pairs(method, toy, logp):
  """The losses of a method on the pairs of a search, one in each group."""
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=2,
    logp_ref_BT=np.zeros((4, 1)),
    extras={
      'search_pair_B': np.array([1, -1, 1, -1]),
      'confidence_B': np.array([SURE[0], 1, SURE[1], 1]),
    },
  )
  traj = traj.replace(
    edges=method.pairs(CreditContext(traj.reward_B, traj)).value
  )
  stats = {'logp': jnp.asarray(logp, jnp.float32)[:, None]}
  return [
    float(one(LossContext(stats, traj, None)).value) for one in method.losses
  ]


@pytest.mark.parametrize(
  'name, expected',
  [
    # Mean of -log sigmoid(beta h), beta 0.1.
    ('mcts_dpo@hard', 0.793731),
    # e = 0.2 and, of a confidence below 1/2, 1/2: mean of
    # -(1 - e) log sigmoid(beta h) - e log sigmoid(-beta h).
    ('mcts_dpo', 0.724238),
  ],
)
def test_the_confidence_is_no_target(toy, name, expected):
  """E1: it smooths the labels of the one and is not read by the other."""
  logp = [RATIOS[0], 0.0, RATIOS[1], 0.0]
  (found,) = losses_of_pairs(load_method(name), toy, logp)
  np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_the_best_steps_are_likely_too(toy):
  """E1: beside the loss of pairs 0.1 times -(-0.9 - 1.2) / 2; of the worse
  steps nothing is said, and without likelihood it is mcts_dpo.
  """
  logp = [-0.9, -0.4, -1.2, -2.0]
  pairs, likely = losses_of_pairs(load_method('mcts_dpo@searched'), toy, logp)
  np.testing.assert_allclose(likely, 0.105, rtol=1e-6)
  assert [pairs] == losses_of_pairs(load_method('mcts_dpo'), toy, logp)
  other = [-0.9, -7.0, -1.2, -3.0]
  found = losses_of_pairs(load_method('mcts_dpo@searched'), toy, other)
  assert found[1] == likely and found[0] != pairs


def test_odds_of_steps_have_no_target(toy):
  """E1: 0.1 times the mean of -log sigmoid of the log odds ratio."""
  win, lose = np.array([-0.9, -1.2]), np.array([-0.4, -2.0])
  logp = np.stack([win, lose], axis=1).ravel()

  def odds(x):
    return x - np.log1p(-np.exp(x))

  expected = 0.1 * np.mean(softplus(odds(lose) - odds(win)))
  found, _ = losses_of_pairs(load_method('cosmos'), toy, logp)
  np.testing.assert_allclose(found, expected, rtol=1e-5)
