"""T-PPO's GAE on V = [.5, .6, .4], gamma 1, lambda .95."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

V = np.array([[0.5, 0.6, 0.4]])


def row(toy, waits, values=V, mask=None):
  """One response, which continues in the next iteration or has finished."""
  mask = np.ones_like(values) if mask is None else mask
  return toy.trajectories(
    mask,
    group_size=1,
    values_BT=values,
    finished_B=np.array([not waits]),
    extras={'waits_B': np.array([float(waits)])},
  )


def test_waiting_by_hand(toy):
  """delta = .1, -.2, 0: A = .1 - .95 * .2, -.2, 0; the reward of a waiting
  response is not read."""
  adv = credit.ExtendedGAE()(
    CreditContext(jnp.array([7.0]), row(toy, True))
  ).value
  np.testing.assert_allclose(adv, [[-0.09, -0.2, 0.0]], rtol=1e-5, atol=1e-7)


def test_second_worked_example(toy):
  """V = .2, .3, .5: A = .1 + .95 * .2, .2, 0."""
  traj = row(toy, True, np.array([[0.2, 0.3, 0.5]]))
  adv = credit.ExtendedGAE()(CreditContext(jnp.zeros(1), traj)).value
  np.testing.assert_allclose(adv, [[0.29, 0.2, 0.0]], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize('extras', [{}, {'waits_B': np.zeros(1)}])
def test_the_token_limit_ends_a_response(toy, extras):
  """It does not wait, so its reward 1 counts and V after it is 0.

  delta = .6 - .5, .4 - .6, 1 - .4: A_3 = .6, A_2 = -.2 + .95 * .6 = .37,
  A_1 = .1 + .95 * .37 = .4515. Without windows no response waits.
  """
  traj = row(toy, True).replace(extras=extras)
  adv = credit.ExtendedGAE()(CreditContext(jnp.ones(1), traj)).value
  np.testing.assert_allclose(adv, [[0.4515, 0.37, 0.6]], rtol=1e-5)


def test_ended_responses_have_plain_gae(toy):
  """E1, discounted and with environment tokens."""
  values = np.array([[0.5, 9.0, 0.6, 0.4, 9.0]])
  mask = np.array([[1, 0, 1, 1, 0]])
  traj, reward = row(toy, False, values, mask), jnp.array([1.0])
  for gamma, lam in ((1.0, 0.95), (0.9, 0.5)):
    np.testing.assert_allclose(
      credit.ExtendedGAE(gamma=gamma, lam=lam)(
        CreditContext(reward, traj)
      ).value,
      credit.GAE(gamma=gamma, lam=lam)(CreditContext(reward, traj)).value,
      rtol=1e-6,
    )


def test_environment_tokens_and_padding_change_nothing(toy):
  """E1: holes and a masked tail leave the waiting row's advantages."""
  values = np.array([[0.5, 9.0, 0.6, 0.4, 9.0, 9.0]])
  mask = np.array([[1, 0, 1, 1, 0, 0]])
  adv = credit.ExtendedGAE()(
    CreditContext(jnp.zeros(1), row(toy, True, values, mask))
  ).value
  np.testing.assert_allclose(
    adv, [[-0.09, 0, -0.2, 0, 0, 0]], rtol=1e-5, atol=1e-7
  )


def test_token_rewards_count_also_while_waiting(toy):
  """Reward .3 on the last token: delta_3 = .3, A_2 = -.2 + .285."""
  adv = credit.ExtendedGAE()(
    CreditContext(jnp.array([[0.0, 0.0, 0.3]]), row(toy, True))
  ).value
  np.testing.assert_allclose(adv[0, 1:], [0.085, 0.3], rtol=1e-5)
