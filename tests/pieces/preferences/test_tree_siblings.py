"""Pairs of steps under the nodes of a tree, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import CreditContext, LossContext

DPO = pref.PairLoss(score=pref.LogRatio(beta=1.0), link=pref.Sigmoid())
# A tree of two steps and two leaves below each: token 0 is the first step,
# which the first row of its node trains, token 1 the rest of the row.
TREE = {
  'node_BK': np.array([[0.0], [0.0], [1.0], [1.0]]),
  'edge_end_BK': np.ones((4, 1)),
}
MASK = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
REWARD = np.array([1.0, 0.0, 0.0, 0.0])
RATIO = np.array([[0.5, 0.1], [9.0, 0.4], [0.2, 0.3], [9.0, 0.6]])


def rows(toy, reward=REWARD, mask=MASK, **fields):
  """One group: values 1/2 and 0 of the steps, 1 and 0 of the first leaves."""
  return toy.trajectories(
    mask,
    group_size=4,
    reward_B=reward,
    logp_ref_BT=0 * mask,
    extras=TREE,
    **fields,
  )


def evaluate(piece, traj, ratio=RATIO):
  """Loss, slope in the log-ratios, and metrics."""

  def call(x):
    return piece(LossContext({'logp': x}, traj, None))[:2]

  (value, metrics), slope = jax.value_and_grad(call, has_aux=True)(
    jnp.asarray(ratio, jnp.float32)
  )
  return float(value), np.asarray(slope), metrics


def softplus(x):
  return np.log1p(np.exp(x))


def test_by_hand(toy):
  """Root: step of row 0 over that of row 2, d = 0.3. Its first node: leaf 0
  over leaf 1, d = -0.3. The leaves of the other node are equal."""
  value, slope, metrics = evaluate(pref.TreeSiblings(loss=DPO), rows(toy))
  expected = (softplus(-0.3) + softplus(0.3)) / 2
  assert value == pytest.approx(expected, rel=1e-6)
  assert metrics['preference/edges'] == 2.0
  assert metrics['preference/accuracy'] == 0.5
  up, down = (1 / (1 + np.exp(x)) / 2 for x in (0.3, -0.3))
  expected = [[-up, -down], [0, down], [up, 0], [0, 0]]
  np.testing.assert_allclose(slope, expected, atol=1e-7)


def test_equal_leaves_make_no_edge(toy):
  """Means of 2 and of 3 times .9 differ in float32."""
  live = np.array([1.0, 1, 1, 1, 1, 0])
  mask = np.ones((6, 2))
  mask[[1, 2, 4, 5], 0] = 0
  traj = toy.trajectories(
    mask,
    group_size=6,
    reward_B=np.full(6, 0.9, np.float32),
    valid_B=live,
    weight_B=live,
    logp_ref_BT=0 * mask,
    extras={
      'node_BK': np.array([[0.0]] * 3 + [[1.0]] * 3),
      'edge_end_BK': np.ones((6, 1)),
    },
  )
  _, _, metrics = evaluate(pref.TreeSiblings(loss=DPO), traj, 0.1 * mask)
  assert metrics['preference/edges'] == 0


def test_value_of_a_step_is_the_mean_of_its_leaves(toy):
  """Three right leaves against one: 1 and 1/2, with an invalid leaf 1 and 1."""
  reward = np.array([1.0, 1.0, 1.0, 0.0])
  _, slope, _ = evaluate(pref.TreeSiblings(loss=DPO), rows(toy, reward))
  assert slope[0, 0] < 0 < slope[2, 0]
  live = np.array([1.0, 1.0, 1.0, 0.0])
  fields = {'valid_B': live, 'weight_B': live}
  _, slope, _ = evaluate(
    pref.TreeSiblings(loss=DPO), rows(toy, reward, **fields)
  )
  assert (slope == 0).all()


def test_a_tree_of_leaves_alone_is_best_against_worst(toy):
  """E0: without inner nodes it is the loss on BestWorst."""
  traj = rows(toy, np.array([0.5, 1.0, 0.0, 0.5]), np.ones((4, 2)))
  none = {'node_BK': np.zeros((4, 0)), 'edge_end_BK': np.zeros((4, 0))}
  traj = traj.replace(extras={k: jnp.asarray(x) for k, x in none.items()})
  value, slope, _ = evaluate(pref.TreeSiblings(loss=DPO), traj)
  edges = pref.BestWorst()(CreditContext(traj.reward_B, traj)).value
  plain, other, _ = evaluate(DPO, traj.replace(edges=edges))
  assert value == plain
  np.testing.assert_array_equal(slope, other)


def test_odds_of_steps(toy):
  """CoS(M+O)S: the likelihood is that of the tokens of the best steps."""
  loss = pref.TreeSiblings(loss=pref.ChosenLikelihood())
  value, slope, _ = evaluate(loss, rows(toy), -RATIO)
  assert value == pytest.approx((0.5 + 0.1) / 2, rel=1e-6)
  np.testing.assert_allclose(slope, [[-0.5, -0.5], [0, 0], [0, 0], [0, 0]])
