"""GAE on V = [.5, .6, .4] with gamma = 1 and lambda = .95."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

V = np.array([[0.5, 0.6, 0.4]])


def row(toy, values=V, mask=None):
  """One response."""
  mask = np.ones_like(values) if mask is None else mask
  return toy.trajectories(mask, group_size=1, values_BT=values)


# Reward 1: delta = [.1, -.2, .6]; A_3 = .6, A_2 = -.2 + .57, A_1 = .1 + .3515.
# Reward 0: delta_3 = -.4; A_2 = -.2 - .38 = -.58, A_1 = .1 - .551.
@pytest.mark.parametrize(
  'reward, expected',
  [(1.0, [0.4515, 0.37, 0.6]), (0.0, [-0.451, -0.58, -0.4])],
)
def test_by_hand(toy, reward, expected):
  """A terminal reward, and the value target A + V."""
  traj, reward_B = row(toy), jnp.array([reward])
  gae = credit.GAE(gamma=1.0, lam=0.95)(CreditContext(reward_B, traj)).value
  np.testing.assert_allclose(gae, [expected], rtol=1e-5)
  target = credit.LambdaReturn(gamma=1.0, lam=0.95)(
    CreditContext(reward_B, traj)
  ).value
  np.testing.assert_allclose(target, expected + V, rtol=1e-5)


def test_discount(toy):
  """gamma .5, lam 0: delta = [.3 - .5, .2 - .6, 1 - .4]."""
  gae = credit.GAE(gamma=0.5, lam=0.0)(
    CreditContext(jnp.array([1.0]), row(toy))
  ).value
  np.testing.assert_allclose(gae, [[-0.2, -0.4, 0.6]], rtol=1e-5)


def test_monte_carlo_limit(toy):
  """V = 0 and lam = 1 give the return-to-go of token rewards."""
  rewards = jnp.array([[1.0, 2.0, 4.0]])
  traj = row(toy, np.zeros((1, 3)))
  np.testing.assert_allclose(
    credit.GAE(gamma=1.0, lam=1.0)(CreditContext(rewards, traj)).value,
    [[7.0, 6.0, 4.0]],
  )
  np.testing.assert_allclose(
    credit.LambdaReturn(gamma=1.0, lam=1.0)(
      CreditContext(rewards, row(toy))
    ).value,
    [[7.0, 6.0, 4.0]],
    rtol=1e-6,
  )


def test_environment_tokens_pass_credit_through(toy):
  """E1: tokens outside the mask leave the others as they were."""
  values = np.array([[0.5, 9.0, 0.6, 9.0, 9.0, 0.4, 9.0]])
  mask = np.array([[1, 0, 1, 0, 0, 1, 0]])
  gae = credit.GAE()(
    CreditContext(jnp.array([1.0]), row(toy, values, mask))
  ).value
  np.testing.assert_allclose(gae, [[0.4515, 0, 0.37, 0, 0, 0.6, 0]], rtol=1e-5)
  target = credit.LambdaReturn()(
    CreditContext(jnp.array([1.0]), row(toy, values, mask))
  ).value
  np.testing.assert_allclose(
    target, [[0.9515, 0, 0.97, 0, 0, 1.0, 0]], rtol=1e-5
  )
