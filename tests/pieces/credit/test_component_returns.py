"""Advantages and targets of each component, by its output of the value head."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method
from rl_jax.pieces import credit
from rl_jax.pieces.ops.component_returns import component_advantages
from rl_jax.pieces.roles import CreditContext


def rollout(toy, outcome=1.0):
  """Two tokens after each other; logp_old - logp_ref is .1, then .3."""
  return toy.trajectories(
    np.array([[1.0, 1.0, 0.0]]),
    group_size=1,
    logp_old_BT=np.array([[-1.0, -1.0, 5.0]]),
    logp_ref_BT=np.array([[-1.1, -1.3, 7.0]]),
    rewards={'outcome': np.array([outcome])},
    values_BTH=np.array([[[0.2, 0.0], [0.4, 0.5], [9.0, 9.0]]]),
  )


def test_by_hand(toy):
  """gamma .9, gamma lam .45. Outcome: 1 - .4 = .6; .36 - .2 + .45 * .6 = .43.
  Divergence: -.3 - .5 = -.8; -.1 + .45 - 0 - .45 * .8 = -.01."""
  found = component_advantages(('outcome',), rollout(toy), 0.9, 0.5)
  expected = [[[0.43, -0.01], [0.6, -0.8], [0.0, 0.0]]]
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
  target = credit.ComponentReturns(components=('outcome',), gamma=0.9, lam=0.5)
  returns = target(CreditContext(jnp.zeros(1), rollout(toy))).value
  expected = [[[0.63, -0.01], [1.0, -0.3], [0.0, 0.0]]]
  np.testing.assert_allclose(returns, expected, rtol=1e-5, atol=1e-7)


def test_an_output_is_a_critic_of_its_own(toy):
  """E0: GAE of the outcome by output 0; the last output sees no reward."""
  traj = rollout(toy)
  found = component_advantages(('outcome',), traj, 0.9, 0.5)
  alone = traj.replace(values_BT=traj.values_BTH[..., 0])
  gae = credit.GAE(gamma=0.9, lam=0.5)(
    CreditContext(traj.rewards['outcome'], alone)
  ).value
  np.testing.assert_array_equal(found[..., 0], gae)
  other = component_advantages(('outcome',), rollout(toy, 7.0), 0.9, 0.5)
  np.testing.assert_array_equal(found[..., 1], other[..., 1])


def test_constants_are_those_of_the_lagrangian():
  """However the target was made."""
  one = credit.Lagrangian(components=('a',), thresholds=(1.0,), lam=0.7)
  found = credit.ComponentReturns().resolve(Method(credit=(one,)))
  assert (found.components, found.gamma, found.lam) == (('a',), 0.99, 0.7)
  assert found.num_values == 2
  assert credit.ComponentReturns().resolve(Method()).num_values == 3


def test_missing_components_are_named(toy):
  with pytest.raises(ValueError, match=r"\['cost'\] are missing"):
    component_advantages(('cost',), rollout(toy), 0.9, 0.5)
