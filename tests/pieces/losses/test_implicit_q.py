"""V, Q and their advantages from recorded rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.methods import ilql
from rl_jax.method import validate
from rl_jax.pieces import credit, losses, regularizers, weights
from rl_jax.pieces.roles import CreditContext, LossContext

KEY = jax.random.key(0)


def regression(toy, value, targets, tau=0.7):
  """The mean loss of V at tokens with these targets; Q are right."""
  count = len(targets)
  target_BTH = np.zeros((1, count, 3))
  target_BTH[0, :, 0] = targets
  traj = toy.trajectories(
    np.ones((1, count)), group_size=1, returns_BTH=target_BTH
  )
  stats = {'action_values': jnp.zeros((1, count, 3)).at[..., 0].set(value)}
  return losses.ImplicitQ(tau=tau)(LossContext(stats, traj, KEY)).value.mean()


def test_an_expectile_by_hand(toy):
  """The expectile of .9 and .1 at tau .7 is .66; at .5 the terms are .112,
  .048.
  """
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
  traj = toy.trajectories(
    np.ones((1, 1)), group_size=1, returns_BTH=np.array([[[0.0, 1.0, 1.0]]])
  )
  stats = {'action_values': jnp.array([[[0.0, 0.5, 3.0]]])}
  found = losses.ImplicitQ()(LossContext(stats, traj, KEY)).value
  np.testing.assert_allclose(found, [[0.25 + 4.0]], rtol=1e-6)


def rows(toy):
  """Two tokens of the policy around one of the environment."""
  own = np.array([[[0.5, 7, 7], [7, 7, 7], [0.25, 7, 7]]])
  targets = np.array([[[7, 0.75, 0.5], [7, 7, 7], [7, 1.0, 2.0]]])
  return toy.trajectories(
    [[1, 0, 1]],
    group_size=1,
    extras={'action_values': own, 'action_values_targets': targets},
  )


def test_targets_and_advantages_by_hand(toy):
  """Q of the first is .9 * .25, of the last the reward; min(Q) counts, which is
  that of the copy."""
  found = credit.ImplicitTargets(gamma=0.9)(
    CreditContext(jnp.full(1, 2.0), rows(toy))
  ).value
  expected = [[0.5, 0.225, 0.225], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]
  np.testing.assert_allclose(np.asarray(found)[0, ::2], expected[::2], 1e-6)
  advantage = credit.ImplicitAdvantage()(
    CreditContext(jnp.full(1, 2.0), rows(toy))
  ).value
  np.testing.assert_allclose(advantage, [[0.0, 0.0, 0.75]])


def weight(toy, advantages, **fields):
  traj = toy.trajectories(
    np.ones((1, 2)), group_size=1, advantages_BT=np.asarray([advantages])
  )
  return weights.ExpAdvantage(**fields)(LossContext({}, traj, KEY)).value[0]


def test_weights_by_hand(toy):
  """exp(4 * .25) and the bound; 0 is cloning; a shift is a common factor."""
  found = weight(toy, [0.25, 3.0])
  np.testing.assert_allclose(found, [np.e, 20.0], rtol=1e-5)
  np.testing.assert_array_equal(weight(toy, [0.25, -3.0], beta=0.0), 1.0)
  shifted = weight(toy, [0.5, 0.0]) / weight(toy, [0.25, -0.25])
  np.testing.assert_allclose(shifted, np.e, rtol=1e-5)


def conservative(toy, q_V, token, coef=1.0):
  """The term of two equal heads."""
  q_V = jnp.asarray(q_V)
  traj = toy.trajectories(np.ones((1, 1)), group_size=1)
  stats = {
    'action_values': jnp.stack([jnp.nan, q_V[token], q_V[token]])[None, None],
    'action_normalisers': jnp.full((1, 1, 2), jax.nn.logsumexp(q_V)),
  }
  loss = regularizers.ConservativeQ(coef=coef)(
    LossContext(stats, traj, KEY)
  ).value
  return float(loss[0, 0])


def test_the_conservative_term_by_hand(toy):
  """Q (.2, .8, .5): 1.4284, .8284, 1.1284 a head; a shift changes nothing."""
  q_V = [0.2, 0.8, 0.5]
  found = [conservative(toy, q_V, token) for token in range(3)]
  np.testing.assert_allclose(
    found, [2 * 1.4284, 2 * 0.8284, 2 * 1.1284], rtol=1e-4
  )
  shifted = conservative(toy, np.add(q_V, 3.0), 1)
  np.testing.assert_allclose(shifted, found[1], rtol=1e-5)
  # The default of ILQL's code; 0 is not a term.
  np.testing.assert_allclose(
    conservative(toy, q_V, 1, regularizers.ConservativeQ().coef),
    found[1] * 1e-4,
    rtol=1e-5,
  )
  assert conservative(toy, q_V, 1, 0.0) == 0.0


def test_both_targets_are_needed():
  """The message names what is missing."""
  method = ilql.get_method()
  with pytest.raises(ValueError, match='ImplicitQ needs method.value_target'):
    validate(
      method.replace(value_target=credit.LambdaReturn()),
      group_size=1,
      has_value_head=True,
    )
  with pytest.raises(ValueError, match=r'set model.value_head=True'):
    validate(method, group_size=1, has_value_head=False)
  validate(method, group_size=1, has_value_head=True)


def test_the_copy_is_a_moving_average():
  """One rule for all pieces that read it."""
  rules = ilql.get_method().policies()
  assert rules['targets'].decay == 0.995 and rules['targets'].iterations == 1
  other = credit.ImplicitAdvantage(decay=0.9)
  with pytest.raises(ValueError, match="policy 'targets'"):
    ilql.get_method().replace(credit=(other,)).policies()


def test_halves_of_two_routes_are_joined(toy):
  """Two steps through one middle state. Recorded are right, wrong (.5, 0) and
  wrong, right (0, .5): the right action has the larger weight at both, where
  likelihood by itself gives each one half.
  """
  action_BT = np.array([[0, 0], [1, 1]])
  reward_BT = jnp.array([[0.5, 0.0], [0.0, 0.5]])
  step_BT = np.array([[0, 1], [0, 1]])

  def values(tables):
    value_BT, q_BT = tables[step_BT, 2], tables[step_BT, action_BT]
    return jnp.stack([value_BT, q_BT, q_BT], axis=-1)

  def scored(tables):
    found = values(tables)
    traj = toy.trajectories(np.ones((2, 2)), group_size=2)
    return traj.replace(
      extras={'action_values': found, 'action_values_targets': found}
    )

  def step(tables, _):
    traj = scored(tables)
    target_BTH = credit.ImplicitTargets()(CreditContext(reward_BT, traj)).value

    def loss(tables):
      stats = {'action_values': values(tables)}
      piece = losses.ImplicitQ()
      return piece(
        LossContext(stats, traj.replace(returns_BTH=target_BTH), KEY)
      ).value.sum()

    return tables - 0.2 * jax.grad(loss)(tables), None

  tables = jax.lax.scan(step, jnp.zeros((2, 3)), None, 200)[0]
  advantage_BT = credit.ImplicitAdvantage()(
    CreditContext(reward_BT, scored(tables))
  ).value
  expected = [[0.15, -0.35], [-0.35, 0.15]]  # of .5 around an expectile of .7
  np.testing.assert_allclose(advantage_BT, expected, atol=1e-3)
