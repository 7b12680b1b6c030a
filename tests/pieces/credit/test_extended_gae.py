"""T-PPO's GAE on V = [.5, .6, .4], gamma 1, lambda .95."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

V = np.array([[0.5, 0.6, 0.4]])


def row(toy, finished, values=V, mask=None):
  """One response."""
  mask = np.ones_like(values) if mask is None else mask
  return toy.trajectories(
    mask,
    group_size=1,
    values_BT=values,
    finished_B=np.array([finished]),
  )


def test_cut_by_hand(toy):
  """delta = .1, -.2, 0: A = .1 - .95 * .2, -.2, 0; the reward of an unfinished
  response is not read."""
  adv = credit.ExtendedGAE()(
    CreditContext(jnp.array([7.0]), row(toy, False))
  ).value
  np.testing.assert_allclose(adv, [[-0.09, -0.2, 0.0]], rtol=1e-5, atol=1e-7)


def test_second_worked_example(toy):
  """V = .2, .3, .5: A = .1 + .95 * .2, .2, 0."""
  traj = row(toy, False, np.array([[0.2, 0.3, 0.5]]))
  adv = credit.ExtendedGAE()(CreditContext(jnp.zeros(1), traj)).value
  np.testing.assert_allclose(adv, [[0.29, 0.2, 0.0]], rtol=1e-5, atol=1e-7)


def test_finished_responses_have_plain_gae(toy):
  """E1, discounted and with environment tokens."""
  values = np.array([[0.5, 9.0, 0.6, 0.4, 9.0]])
  mask = np.array([[1, 0, 1, 1, 0]])
  traj, reward = row(toy, True, values, mask), jnp.array([1.0])
  for gamma, lam in ((1.0, 0.95), (0.9, 0.5)):
    np.testing.assert_allclose(
      credit.ExtendedGAE(gamma=gamma, lam=lam)(
        CreditContext(reward, traj)
      ).value,
      credit.GAE(gamma=gamma, lam=lam)(CreditContext(reward, traj)).value,
      rtol=1e-6,
    )


def test_environment_tokens_and_padding_change_nothing(toy):
  """E1: holes and a masked tail leave the cut row's advantages."""
  values = np.array([[0.5, 9.0, 0.6, 0.4, 9.0, 9.0]])
  mask = np.array([[1, 0, 1, 1, 0, 0]])
  adv = credit.ExtendedGAE()(
    CreditContext(jnp.zeros(1), row(toy, False, values, mask))
  ).value
  np.testing.assert_allclose(
    adv, [[-0.09, 0, -0.2, 0, 0, 0]], rtol=1e-5, atol=1e-7
  )


def test_token_rewards_count_also_when_cut(toy):
  """Reward .3 on the last token: delta_3 = .3, A_2 = -.2 + .285."""
  adv = credit.ExtendedGAE()(
    CreditContext(jnp.array([[0.0, 0.0, 0.3]]), row(toy, False))
  ).value
  np.testing.assert_allclose(adv[0, 1:], [0.085, 0.3], rtol=1e-5)
