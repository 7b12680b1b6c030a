"""Coefficients of NFT by hand: a group of four with one right row, p = 1/4."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext

REWARD = np.array([[1.0], [0], [0], [0]])
OLD = np.full((4, 1), -1.0)


def coefficient(toy, ratio=(1, 1, 1, 1), loss=None, reward=REWARD, **fields):
  """-dl/dlogp of four one-token rows."""
  return toy.coefficient(
    loss or losses.NFT(),
    OLD + np.log(np.array(ratio, float))[:, None],
    logp_old_BT=OLD,
    advantages_BT=reward,
    **fields,
  )[:, 0]


def test_by_hand_off_policy(toy):
  """w = 3/4. Ratio 1.2: (1 - .3) / .75 < 1 has the value 0 by the floor, and
  -w (1/3) 1.2 = -.3. Ratio .8: x = 16/15, value -w log x = -.048404 and
  -w (1/3) .8 / x = -.1875. Right rows: w = .75 at any ratio."""
  ratio = np.array([[2.0], [1.2], [0.8], [1.0]])
  traj = toy.trajectories(
    np.ones((4, 1)), group_size=4, logp_old_BT=OLD, advantages_BT=REWARD
  )
  logp = jnp.asarray(OLD + np.log(ratio), jnp.float32)
  value, metrics, _ = losses.NFT()(
    LossContext({'logp': logp}, traj, jax.random.key(0))
  )
  np.testing.assert_allclose(
    value[1:3, 0], [0.0, -0.048404], rtol=1e-4, atol=1e-6
  )
  np.testing.assert_allclose(metrics['policy/correct_rate'], 0.25)
  np.testing.assert_allclose(
    coefficient(toy, (2, 1.2, 0.8, 1)), [0.75, -0.3, -0.1875, -0.25], rtol=1e-5
  )


@pytest.mark.parametrize(
  'normalize, expected',
  [
    (0, [1, -1 / 3, -1 / 3, -1 / 3]),
    (1, [0.75, -0.25, -0.25, -0.25]),  # Dr. GRPO
    (2, [1.732051, -0.57735, -0.57735, -0.57735]),  # GRPO with ddof 0
  ],
)
def test_on_policy(toy, normalize, expected):
  """Times w: 1, 3/4 and sqrt(3)."""
  loss = losses.NFT(normalize=normalize)
  np.testing.assert_allclose(coefficient(toy, loss=loss), expected, rtol=1e-5)


def test_without_wrong_answers_it_is_supervised(toy):
  """negative_weight 0: only the right row is left."""
  loss = losses.NFT(negative_weight=0.0)
  np.testing.assert_allclose(coefficient(toy, loss=loss), [0.75, 0, 0, 0])


def test_rates_stay_off_the_edges(toy):
  """All right: p = .98, so w = .02; all wrong: -p with p = .02."""
  ones = np.ones((4, 1))
  np.testing.assert_allclose(coefficient(toy, reward=ones), 0.02, rtol=1e-5)
  np.testing.assert_allclose(
    coefficient(toy, reward=0 * ones), -0.02, rtol=1e-5
  )


def test_the_rate_is_a_mean_over_groups(toy):
  """Groups of two with 1/2 and .98: .74."""
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=2,
    logp_old_BT=OLD,
    advantages_BT=np.array([[1.0], [0], [1], [1]]),
  )
  stats = {'logp': jnp.asarray(OLD, jnp.float32)}
  metrics = losses.NFT()(LossContext(stats, traj, jax.random.key(0))).metrics
  np.testing.assert_allclose(metrics['policy/correct_rate'], 0.74, rtol=1e-6)


def test_a_row_is_right_above_one_half(toy):
  """E0: credits .51 and .49 are separated like 1 and 0."""
  near = coefficient(toy, reward=0.49 + 0.02 * REWARD)
  np.testing.assert_array_equal(near, coefficient(toy))


def test_ratios_are_cut(toy):
  """15 nats count as 10: a right row has -w log r = -.75 * 10."""
  traj = toy.trajectories(
    np.ones((4, 1)), group_size=4, logp_old_BT=OLD, advantages_BT=REWARD
  )
  logp = jnp.asarray(OLD, jnp.float32).at[0].add(15.0)
  value = losses.NFT()(
    LossContext({'logp': logp}, traj, jax.random.key(0))
  ).value
  np.testing.assert_allclose(value[0], [-7.5], rtol=1e-5)


def test_invalid_rows_do_not_enter_the_rate(toy):
  """One right of two valid rows: p = 1/2."""
  valid = np.array([1.0, 1, 0, 0])
  actual = coefficient(toy, valid_B=valid)
  np.testing.assert_allclose(actual[:2], [0.5, -0.5], rtol=1e-5)
