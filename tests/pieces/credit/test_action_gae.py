"""POAD on two actions of two tokens, V = [.2, .4], [.6, .8], r = 0, 1."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

V = np.array([[0.2, 0.4, 0.6, 0.8]])
STARTS = np.array([[1, 0, 1, 0]])


def row(toy, values=V, starts=STARTS, mask=None):
  """One response."""
  mask = np.ones_like(values) if mask is None else mask
  return toy.trajectories(
    mask,
    group_size=1,
    values_BT=values,
    extras={'segment_start_BT': starts},
  )


def poad(**fields):
  """With boundaries from extras."""
  return credit.ActionGAE(segments='extras', **fields)


def test_by_hand(toy):
  """gamma .5, lam 1, backwards: 1 - .8; .8 - .6 + .2; .5 * .6 - .4 + .5 * .4;
  .4 - .2 + .1."""
  adv = poad(gamma=0.5, lam=1.0)(
    CreditContext(jnp.array([1.0]), row(toy))
  ).value
  np.testing.assert_allclose(adv, [[0.3, 0.1, 0.4, 0.2]], rtol=1e-5)
  target = credit.ActionReturn(gamma=0.5, lam=1.0, segments='extras')
  np.testing.assert_allclose(
    target(CreditContext(jnp.array([1.0]), row(toy))).value,
    [[0.5, 0.5, 1.0, 1.0]],
    rtol=1e-5,
  )


def test_one_token_actions_are_token_gae(toy):
  """E1: the naive token PPO of the paper, [-.075, -.15, -.1, .2]."""
  traj, reward = row(toy, starts=np.ones((1, 4))), jnp.array([1.0])
  adv = poad(gamma=0.5, lam=1.0)(CreditContext(reward, traj)).value
  expected = [[-0.075, -0.15, -0.1, 0.2]]
  np.testing.assert_allclose(adv, expected, rtol=1e-5)
  gae = credit.GAE(gamma=0.5, lam=1.0)(CreditContext(reward, traj)).value
  np.testing.assert_allclose(adv, gae, rtol=1e-6)


def test_gamma_one_has_no_boundaries(toy):
  """E1: POAD = GAE whatever the actions are."""
  reward = jnp.array([1.0])
  np.testing.assert_allclose(
    poad(gamma=1.0, lam=0.9)(CreditContext(reward, row(toy))).value,
    credit.GAE(gamma=1.0, lam=0.9)(CreditContext(reward, row(toy))).value,
    rtol=1e-6,
  )


def test_splitting_an_action_keeps_the_boundaries(toy):
  """E1, lam 1: a repeated token of the same value inside an action leaves all
  advantages; with token discounting it would not."""
  values = np.array([[0.2, 0.4, 0.4, 0.6, 0.8]])
  starts = np.array([[1, 0, 0, 1, 0]])
  piece, reward = poad(gamma=0.5, lam=1.0), jnp.array([1.0])
  adv = piece(CreditContext(reward, row(toy, values, starts))).value
  np.testing.assert_allclose(adv, [[0.3, 0.1, 0.1, 0.4, 0.2]], rtol=1e-5)


def test_turns_are_actions(toy):
  """E1: environment tokens between the actions mark the boundary."""
  values = np.array([[0.2, 0.4, 9.0, 9.0, 0.6, 0.8, 9.0]])
  mask = np.array([[1, 1, 0, 0, 1, 1, 0]])
  traj = row(toy, values, np.zeros((1, 7)), mask)
  adv = credit.ActionGAE(gamma=0.5, lam=1.0)(
    CreditContext(jnp.array([1.0]), traj)
  ).value
  np.testing.assert_allclose(adv, [[0.3, 0.1, 0, 0, 0.4, 0.2, 0]], rtol=1e-5)
  target = credit.ActionReturn(gamma=0.5, lam=1.0)(
    CreditContext(jnp.array([1.0]), traj)
  ).value
  expected = [[0.5, 0.5, 0, 0, 1.0, 1.0, 0]]
  np.testing.assert_allclose(target, expected, rtol=1e-5)
