"""Prefix weights of MinPRO by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

# Smallest ratio strictly before: 1 (none), 1.1, .7, .7.
RATIO = np.array([[1.1, 0.7, 0.9, 1.3]])
WEIGHT = [[1.1, 0.77, 0.63, 0.91]]
ADV = np.ones((1, 4))
LOOSE = losses.MinPRO(clip_low=1.0, clip_high=9.0)


def coefficient(toy, loss, ratio=RATIO, adv=ADV, **fields):
  """-dl/dlogp."""
  old = np.full(ratio.shape, -1.0)
  return toy.coefficient(
    loss, old + np.log(ratio), logp_old_BT=old, advantages_BT=adv, **fields
  )


@pytest.mark.parametrize('form', ['score', 'ppo'])
def test_by_hand(toy, form):
  """Both forms have the coefficient A w where nothing is clipped."""
  loss = losses.MinPRO(clip_low=1.0, clip_high=9.0, form=form)
  np.testing.assert_allclose(coefficient(toy, loss), WEIGHT, rtol=1e-5)


def test_clips(toy):
  """Score form: .77 and .63 rise to .8. PPO form with A = -1: they are cut."""
  np.testing.assert_allclose(
    coefficient(toy, losses.MinPRO()), [[1.1, 0.8, 0.8, 0.91]], rtol=1e-5
  )
  np.testing.assert_allclose(
    coefficient(toy, losses.MinPRO(form='ppo'), adv=-ADV),
    [[-1.1, 0, 0, -0.91]],
    rtol=1e-5,
  )


def test_cut_tokens_are_counted(toy):
  """w = 1.1, .77, .63, .91: two below .8. only 1.3 is above 1.28."""
  for ratio, cut in ((RATIO, [[0, 1, 1, 0]]), (np.array([[1.3]]), [[1]])):
    traj = toy.trajectories(
      np.ones(ratio.shape), group_size=1, advantages_BT=np.ones(ratio.shape)
    )
    stats = {'logp': jnp.log(jnp.asarray(ratio, jnp.float32))}
    metrics = losses.MinPRO()(
      LossContext(stats, traj, jax.random.key(0))
    ).metrics
    np.testing.assert_array_equal(metrics['policy/clip_fraction'], cut)


def test_on_policy_it_is_reinforce(toy):
  """E1: all ratios 1."""
  adv = np.array([[0.5, -1.0, 2.0, -3.0]])
  for form in ('score', 'ppo'):
    actual = coefficient(
      toy, losses.MinPRO(form=form), np.ones((1, 4)), adv=adv
    )
    np.testing.assert_allclose(actual, adv, rtol=1e-6)


def test_masked_tokens_are_passed_over(toy):
  """A tool token with ratio .01 in the middle changes no weight."""
  ratio = np.array([[1.1, 0.7, 0.01, 0.9, 1.3]])
  mask = np.array([[1.0, 1, 0, 1, 1]])
  actual = coefficient(toy, LOOSE, ratio, np.ones((1, 5)), mask_BT=mask)
  np.testing.assert_allclose(actual[:, [0, 1, 3, 4]], WEIGHT, rtol=1e-5)


def test_the_weight_never_exceeds_that_of_the_token_after_a_fall(toy):
  """From the first ratio below 1 on, w <= r."""
  ratio = np.array([[0.9, 5.0, 1.2, 2.0]])
  assert (coefficient(toy, LOOSE, ratio) <= ratio * (1 + 1e-6)).all()
