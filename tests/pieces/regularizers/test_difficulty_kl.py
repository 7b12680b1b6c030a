"""DADS of APO: the weight 1 - exp(-e (1 - d)) on good samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import regularizers
from rl_jax.pieces.roles import LossContext


def rollout(toy, right, group=8):
  """One group with `right` right rows; the first row has A > 0."""
  reward = (np.arange(group) < right).astype(np.float32)
  adv = np.where(np.arange(group) == 0, 1.0, -1.0)[:, None]
  return toy.trajectories(
    np.ones((group, 1)),
    group_size=group,
    reward_B=reward,
    advantages_BT=adv,
    logp_ref_BT=np.full((group, 1), -1.0),
  )


@pytest.mark.parametrize(
  'right, omega', [(7, 0.90731), (4, 0.74312), (1, 0.28808), (8, 1.0), (0, 1.0)]
)
def test_weight_by_hand(toy, right, omega):
  """d = 1/8, 1/2, 7/8 and the two ends; bad samples keep 1."""
  weight = regularizers.DifficultyKL()._weight(rollout(toy, right))
  np.testing.assert_allclose(weight[0], omega, rtol=2e-5)
  np.testing.assert_array_equal(weight[1:], 1)


def test_loss_by_hand(toy):
  """logp - logp_ref = log 2: k3 = 1/2 - 1 + log 2 = .193147; coef 2, d .5."""
  logp = jnp.full((8, 1), np.log(2.0) - 1.0)
  piece = regularizers.DifficultyKL(coef=2.0)
  loss = piece(
    LossContext({'logp': logp}, rollout(toy, 4), jax.random.key(0))
  ).value
  np.testing.assert_allclose(loss[0], 2 * 0.74312 * 0.193147, rtol=1e-5)
  np.testing.assert_allclose(loss[1:], 2 * 0.193147, rtol=1e-5)


def test_without_good_samples_it_is_the_plain_penalty(toy):
  """E1: all A < 0."""
  traj = rollout(toy, 4).replace(advantages_BT=-jnp.ones((8, 1)))
  stats = {'logp': jnp.linspace(-3.0, -0.1, 8)[:, None]}
  key = jax.random.key(0)
  ours = regularizers.DifficultyKL(coef=0.3)(
    LossContext(stats, traj, key)
  ).value
  plain = regularizers.KLPenalty(coef=0.3)(LossContext(stats, traj, key)).value
  np.testing.assert_allclose(ours, plain, rtol=1e-6)
