"""V, Q and their advantages from recorded rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method, validate
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

KEY = jax.random.key(0)


def regression(toy, value, targets, tau=0.7):
  """The mean loss of V at tokens with these targets; Q are right."""
  count = len(targets)
  target_BTH = np.zeros((1, count, 3))
  target_BTH[0, :, 0] = targets
  traj = toy.trajectories(
    np.ones((1, count)), group_size=1, returns_BTH=target_BTH
  )
  heads = jnp.zeros((1, count, 3)).at[..., 0].set(value)
  stats = {'value_heads': heads, 'value_heads_after': jnp.zeros_like(heads)}
  return losses.ImplicitQ(tau=tau)(stats, traj, KEY)[0].mean()


def test_an_expectile_by_hand(toy):
  """Of .9 and .1 at tau .7 it is .66; at .5 the terms are .112 and .048."""
  gradient = jax.grad(lambda v: regression(toy, v, [0.9, 0.1]))
  np.testing.assert_allclose(gradient(0.66), 0.0, atol=1e-6)
  terms = [regression(toy, 0.5, [x]) for x in (0.9, 0.1)]
  np.testing.assert_allclose(terms, [0.112, 0.048], rtol=1e-5)
  for target, slope in ((0.9, -0.56), (0.1, 0.24)):
    found = jax.grad(lambda v, x=target: regression(toy, v, [x]))(0.5)
    np.testing.assert_allclose(found, slope, rtol=1e-5)


def test_the_middle_expectile_is_half_of_the_squared_error(toy):
  """E1: at tau .5, with the errors of both Q beside it."""
  found = regression(toy, 0.2, [0.9, -0.4], tau=0.5)
  np.testing.assert_allclose(found, 0.25 * (0.7**2 + 0.6**2), rtol=1e-6)
  ones = np.ones((1, 1))
  traj = toy.trajectories(
    ones, group_size=1, returns_BTH=np.array([[[0.0, 1.0, 1.0]]])
  )
  stats = {'value_heads': jnp.zeros((1, 1, 3))}
  stats['value_heads_after'] = jnp.array([[[9.0, 0.5, 3.0]]])
  found, _ = losses.ImplicitQ()(stats, traj, KEY)
  np.testing.assert_allclose(found, [[0.25 + 4.0]], rtol=1e-6)


def rows(toy):
  """Two tokens of the policy around one of the environment."""
  before = np.array([[[0.5, 7, 7], [7, 7, 7], [0.25, 7, 7]]])
  after = np.array([[[7, 0.75, 0.5], [7, 7, 7], [7, 1.0, 2.0]]])
  return toy.trajectories(
    [[1, 0, 1]],
    group_size=1,
    values_BTH=before,
    extras={'value_heads_after': after},
  )


def test_targets_and_advantages_by_hand(toy):
  """Q of the first is .9 * .25, of the last the reward; min(Q) counts."""
  found = credit.ImplicitTargets(gamma=0.9)(jnp.full(1, 2.0), rows(toy))
  expected = [[0.5, 0.225, 0.225], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]
  np.testing.assert_allclose(np.asarray(found)[0, ::2], expected[::2], 1e-6)
  advantage = credit.ImplicitAdvantage()(jnp.full(1, 2.0), rows(toy))
  np.testing.assert_allclose(advantage, [[0.0, 0.0, 0.75]])


def weight(toy, advantages, **fields):
  traj = toy.trajectories(
    np.ones((1, 2)), group_size=1, advantages_BT=np.asarray([advantages])
  )
  return weights.ExpAdvantage(**fields)({}, traj, KEY)[0][0]


def test_weights_by_hand(toy):
  """exp(4 * .25) and the bound; 0 is cloning; a shift is a common factor."""
  found = weight(toy, [0.25, 3.0])
  np.testing.assert_allclose(found, [np.e, 20.0], rtol=1e-5)
  np.testing.assert_array_equal(weight(toy, [0.25, -3.0], beta=0.0), 1.0)
  shifted = weight(toy, [0.5, 0.0]) / weight(toy, [0.25, -0.25])
  np.testing.assert_allclose(shifted, np.e, rtol=1e-5)


def test_three_heads_are_needed():
  """The message names the target and the number of outputs."""
  method = Method(
    losses=(losses.NegativeLogLikelihood(), losses.ImplicitQ()),
    value_target=credit.LambdaReturn(),
    aggregation=TokenMean(),
  )
  with pytest.raises(ValueError, match='ImplicitQ needs method.value_target'):
    validate(method, group_size=1, has_value_head=True, num_values=3)
  whole = method.replace(value_target=credit.ImplicitTargets())
  with pytest.raises(ValueError, match='num_values=3'):
    validate(whole, group_size=1, has_value_head=True, num_values=1)
  validate(whole, group_size=1, has_value_head=True, num_values=3)


def test_halves_of_two_routes_are_joined(toy):
  """Two steps through one middle state. Recorded are right, wrong (.5, 0) and
  wrong, right (0, .5): the right action has the larger weight at both, where
  likelihood alone gives each one half."""
  action_BT = np.array([[0, 0], [1, 1]])
  reward_BT = jnp.array([[0.5, 0.0], [0.0, 0.5]])
  step_BT = np.array([[0, 1], [0, 1]])

  def heads(tables):
    value_BT, q_BT = tables[step_BT, 2], tables[step_BT, action_BT]
    before_BTH = jnp.stack([value_BT, 0 * q_BT, 0 * q_BT], axis=-1)
    return before_BTH, jnp.stack([0 * q_BT, q_BT, q_BT], axis=-1)

  def scored(tables):
    before_BTH, after_BTH = heads(tables)
    traj = toy.trajectories(np.ones((2, 2)), group_size=2)
    return traj.replace(
      values_BTH=before_BTH, extras={'value_heads_after': after_BTH}
    )

  def step(tables, _):
    traj = scored(tables)
    target_BTH = credit.ImplicitTargets()(reward_BT, traj)

    def loss(tables):
      names = 'value_heads', 'value_heads_after'
      stats = dict(zip(names, heads(tables), strict=True))
      piece = losses.ImplicitQ()
      return piece(stats, traj.replace(returns_BTH=target_BTH), KEY)[0].sum()

    return tables - 0.2 * jax.grad(loss)(tables), None

  tables = jax.lax.scan(step, jnp.zeros((2, 3)), None, 200)[0]
  advantage_BT = credit.ImplicitAdvantage()(reward_BT, scored(tables))
  expected = [[0.15, -0.35], [-0.35, 0.15]]  # of .5 around an expectile of .7
  np.testing.assert_allclose(advantage_BT, expected, atol=1e-3)
