"""poad@ntpo: the naive token PPO of POAD, which discounts every token."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.learning.batch import make_batch
from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

V = np.array([[0.2, 0.4, 0.6, 0.8]])


@pytest.fixture(scope='module')
def methods():
  """(poad@ntpo, poad)."""
  return [configuration.load_method(name) for name in ('poad@ntpo', 'poad')]


def row(toy, values=V, **fields):
  """A response of one action, with reward 1."""
  return toy.trajectories(
    np.ones_like(values),
    **{'group_size': 1, 'reward_B': np.ones(1), 'values_BT': values, **fields},
  )


def test_by_hand(toy, methods):
  """g = .95, g lam = .9025, backwards: 1 - .8; .95 .8 - .6 + .9025 .2; .95 .6 -
  .4 + .9025 .3405; .95 .4 - .2 + .9025 .477301. Targets: plus V."""
  ntpo, _ = methods
  found = ntpo.credit[0](CreditContext(jnp.ones(1), row(toy))).value
  expected = np.array([[0.610764, 0.477301, 0.3405, 0.2]])
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  target = ntpo.value_target(CreditContext(jnp.ones(1), row(toy))).value
  np.testing.assert_allclose(target, expected + V, rtol=1e-5)


def test_poad_discounts_once(toy, methods):
  """No gamma inside the one action: .3405 becomes .8 - .6 + .95 .2 = .39."""
  _, poad = methods
  found = poad.credit[0](CreditContext(jnp.ones(1), row(toy))).value
  np.testing.assert_allclose(found[0, 2:], [0.39, 0.2], rtol=1e-5)


def test_gamma_one_is_poad(toy, methods):
  """E1: advantages and targets of the whole methods."""
  found = []
  for method in methods:
    first, whiten = method.credit
    method = dataclasses.replace(
      method,
      credit=(dataclasses.replace(first, gamma=1.0), whiten),
      value_target=dataclasses.replace(method.value_target, gamma=1.0),
    )
    traj, _, _ = make_batch(method, row(toy), method.init_state(1))
    found.append((traj.advantages_BT, traj.returns_BT))
  np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_is_poad_of_one_token_actions(toy, methods):
  """E1: every token is an action."""
  ntpo, _ = methods
  traj = row(toy, extras={'segment_start_BT': np.ones((1, 4))})
  one = credit.ActionGAE(segments='extras')
  np.testing.assert_allclose(
    ntpo.credit[0](CreditContext(jnp.ones(1), traj)).value,
    one(CreditContext(jnp.ones(1), traj)).value,
    rtol=1e-6,
  )


def test_a_longer_action_is_discounted_more(toy, methods):
  """Splitting a token moves the first advantage, which POAD leaves at lam 1."""
  longer = row(toy, np.array([[0.2, 0.4, 0.4, 0.6, 0.8]]))
  first = []
  for method in methods:
    piece = dataclasses.replace(method.credit[0], lam=1.0)
    pair = [
      piece(CreditContext(jnp.ones(1), traj)).value[0, 0]
      for traj in (row(toy), longer)
    ]
    first.append(pair)
  assert first[0][1] < 0.97 * first[0][0]
  np.testing.assert_allclose(first[1][1], first[1][0], rtol=1e-6)


def test_nothing_trained_is_zero(toy, methods):
  """An invalid row, and a row without a token of the policy."""
  ntpo, _ = methods
  for fields in (
    {'valid_B': np.zeros(1), 'weight_B': np.zeros(1)},
    {'mask_BT': np.zeros((1, 4)), 'kind_BT': np.zeros((1, 4), np.int32)},
  ):
    traj, _, _ = make_batch(ntpo, row(toy).replace(**fields), {})
    np.testing.assert_array_equal(traj.advantages_BT, 0.0)
    np.testing.assert_array_equal(traj.returns_BT, 0.0)
