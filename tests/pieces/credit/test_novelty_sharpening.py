"""XRPO's bonus for unlikely right answers."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext


def sharpen(toy, eta, adv, reward, **fields):
  """Rows whose log-probs are log(eta), shifted so that the mean is that of the
  last row, which makes the mean 0."""
  logp = np.log(np.asarray(eta))
  logp = np.append(logp, -logp.sum())[:, None] - 3.0
  B = len(logp)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    logp_old_BT=logp,
    reward_B=np.append(reward, 0.0).astype(np.float32),
  )
  piece = credit.NoveltySharpening(**fields)
  return piece(CreditContext(jnp.append(jnp.asarray(adv), -1.0), traj)).value[
    :-1
  ]


def test_by_hand(toy):
  """A = 1: eta .6 -> 1 + min(1, .5); .95 -> 1.125; 1.2 -> 1; a wrong row of
  eta .6 stays."""
  actual = sharpen(toy, [0.6, 0.95, 1.2, 0.6], [1.0, 1, 1, 1], [1, 1, 1, 0])
  np.testing.assert_allclose(actual, [1.5, 1.125, 1.0, 1.0], rtol=1e-5)


def test_a_negative_advantage_has_no_bonus(toy):
  """A right row below the mean of its group is not punished for novelty."""
  adv = jnp.array([-1.0, 0.0, 1.0])
  actual = sharpen(toy, [0.6, 0.6, 0.6], adv, [1, 1, 1])
  np.testing.assert_allclose(actual, [-1.0, 0.0, 1.5], rtol=1e-5)


def test_zero_coef_is_grpo(toy):
  """E0."""
  adv = jnp.array([0.3, 1.0])
  np.testing.assert_array_equal(
    sharpen(toy, [0.5, 0.1], adv, [1, 1], coef=0.0), adv
  )


def test_bounds_and_shift(toy):
  """A <= A+ <= (1 + limit) A; a constant in all log-probs drops out. E1."""
  eta = np.array([0.01, 0.3, 0.9, 3.0])
  adv = jnp.array([1.0, 2.0, 0.5, 0.1])
  plus = sharpen(toy, eta, adv, np.ones(4), limit=0.25)
  assert (plus >= adv).all() and (plus <= 1.25 * adv + 1e-6).all()
  traj = toy.trajectories(
    np.ones((2, 2)),
    group_size=2,
    logp_old_BT=np.array([[-1.0, -2.0], [-3.0, -2.5]]),
    reward_B=np.ones(2),
  )
  piece = credit.NoveltySharpening()
  moved = traj.replace(logp_old_BT=traj.logp_old_BT - 4.0)
  one = jnp.ones(2)
  np.testing.assert_allclose(
    piece(CreditContext(one, moved)).value,
    piece(CreditContext(one, traj)).value,
    rtol=1e-5,
  )
