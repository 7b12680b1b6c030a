"""The clipped geometric mean of GMPO by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

OLD = np.full((1, 2), -1.0)


def coefficient(toy, change, adv, loss=None, **fields):
  """-d(sum of the loss)/d logp of one row of two tokens."""
  return toy.coefficient(
    loss or losses.GMPO(),
    OLD + np.array([change]),
    logp_old_BT=OLD,
    advantages_BT=np.full((1, 2), adv),
    **fields,
  )[0]


@pytest.mark.parametrize(
  'change, adv, expected',
  [
    # .6 is held at .4: mean (.4 - .2) / 2 = .1, e^.1 = 1.105171; two tokens
    # carry the same value, and each has half of its mean.
    ([0.6, -0.2], 1.0, [0, 1.105171]),
    # -.6 is held at -.4, .6 is not: mean .1.
    ([0.6, -0.6], -1.0, [-1.105171, 0]),
    # Inside: e^.1 at both.
    ([0.3, -0.1], 2.0, [2.210342, 2.210342]),
    # -.6 is held for A < 0 only: mean -.2, e^-.2 = .818731, times 1/2.
    ([0.2, -0.6], 0.5, [0.409365, 0.409365]),
  ],
)
def test_by_hand(toy, change, adv, expected):
  """Four rows, derived above."""
  np.testing.assert_allclose(coefficient(toy, change, adv), expected, rtol=1e-5)


def test_clipped_tokens_are_counted(toy):
  """.6 with A > 0, -.6 with A < 0."""
  change = np.array([[0.6, -0.2], [0.6, -0.6]])
  traj = toy.trajectories(
    np.ones((2, 2)),
    group_size=2,
    advantages_BT=np.array([[1.0] * 2, [-1.0] * 2]),
  )
  stats = {'logp': jnp.asarray(change, jnp.float32)}
  metrics = losses.GMPO()(LossContext(stats, traj, jax.random.key(0))).metrics
  np.testing.assert_array_equal(
    metrics['policy/clip_fraction'], [[1, 0], [0, 1]]
  )


def test_on_policy_it_is_reinforce(toy):
  """E1, also with limits of 0, where ratio 1 lies on the edge."""
  for loss in (None, losses.GMPO(log_clip_low=0.0, log_clip_high=0.0)):
    for adv in (0.7, -0.7):
      np.testing.assert_allclose(
        coefficient(toy, [0, 0], adv, loss), adv, rtol=1e-6
      )


def test_only_the_sum_counts_inside_the_limits(toy):
  """E1: moving log-ratio between tokens changes nothing."""
  np.testing.assert_allclose(
    coefficient(toy, [0.3, -0.1], 1.0),
    coefficient(toy, [0.1, 0.1], 1.0),
    rtol=1e-5,
  )


def test_masked_tokens_do_not_enter_the_mean(toy):
  """Token 0 only: e^.3."""
  actual = coefficient(toy, [0.3, -0.1], 1.0, mask_BT=np.array([[1.0, 0]]))
  np.testing.assert_allclose(actual[0] / 2, np.exp(0.3), rtol=1e-5)
