"""COPO's blend of a local and a prompt-level advantage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import losses
from rl_jax.pieces.roles import LossContext


def rollout(toy, ids, reward, adv, ratio):
  """Groups of two one-token rows."""
  B = len(ids)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=2,
    reward_B=np.asarray(reward, np.float32),
    advantages_BT=np.asarray(adv)[:, None],
    extras={'cluster_id_B': np.asarray(ids)},
  )
  return traj, jnp.log(jnp.asarray(ratio, jnp.float32))[:, None]


def push(loss, traj, logp):
  """-d loss / d logp."""
  key = jax.random.key(0)

  def value(x):
    return loss(LossContext({'logp': x}, traj, key)).value.sum()

  return -jax.grad(value)(logp)[:, 0]


def test_global_advantage_by_hand(toy):
  """Returns 0, 1/2, 1: std (ddof 1) 1/2, so B = -1, 0, 1."""
  traj, _ = rollout(toy, [0] * 6, [0, 0, 1, 0, 1, 1], np.zeros(6), np.ones(6))
  weight, shared = losses.ConsistencyClip(eps=1e-9)._blend(traj)
  np.testing.assert_allclose(shared, [-1, 0, 1], atol=1e-6)
  # All agree, H = 0: sigmoid(-30) = 9.4e-14, purely global.
  np.testing.assert_allclose(weight, np.full(3, 9.357623e-14), rtol=1e-4)


def test_eps_is_added_and_one_valid_row_is_a_group(toy):
  """The same returns with eps 1/2: half of it. The last row is not valid."""
  traj, _ = rollout(toy, [0] * 6, [0, 0, 1, 0, 1, 9], np.zeros(6), np.ones(6))
  traj = traj.replace(valid_B=jnp.array([1.0, 1, 1, 1, 1, 0]))
  _, shared = losses.ConsistencyClip(eps=0.5)._blend(traj)
  np.testing.assert_allclose(shared, [-0.5, 0, 0.5], atol=1e-6)


def test_weight_by_hand(toy):
  """H = log 2 = .693147 and gamma 2, rho 1/2: sigmoid(.386294) = .595390."""
  traj, _ = rollout(toy, [0, 1], [1, 0], [1, -1], [1, 1])
  weight, _ = losses.ConsistencyClip(gamma=2.0, rho=0.5)._blend(traj)
  np.testing.assert_allclose(weight, [0.595390], rtol=1e-5)
  # Two rows without an answer do not agree either.
  traj, _ = rollout(toy, [-1, -1], [1, 0], [1, -1], [1, 1])
  weight, _ = losses.ConsistencyClip(gamma=2.0, rho=0.5)._blend(traj)
  np.testing.assert_allclose(weight, [0.595390], rtol=1e-5)


def test_masked_tokens_and_the_metric(toy):
  """w = 1/2 in both groups. A masked token has no prompt-level advantage; the
  local one of row 1 is 0 as well."""
  traj, logp = rollout(toy, [0] * 4, [0, 0, 1, 1], [1, 0, 1, -1], [1] * 4)
  traj = traj.replace(mask_BT=jnp.array([[1.0], [0], [1], [1]]))
  loss = losses.ConsistencyClip(gamma=0.0)
  value, metrics, _ = loss(LossContext({'logp': logp}, traj, jax.random.key(0)))
  np.testing.assert_array_equal(value[1], 0)
  np.testing.assert_allclose(metrics['policy/local_weight'], 0.5, rtol=1e-6)


def test_both_surrogates_are_clipped_apart(toy):
  """gamma 0, w = 1/2. Group 1 has B = -1/sqrt 2, group 2 B = 1/sqrt 2 (returns
  0 and 1). Row 0: ratio 1.5, A = 1 cut, B < 0 not: push .5 * 1.5 * -.7071."""
  traj, logp = rollout(
    toy, [0, 0, 0, 0], [0, 0, 1, 1], [1, -1, 1, -1], [1.5, 1, 1, 1]
  )
  coefficient = push(losses.ConsistencyClip(gamma=0.0, eps=1e-9), traj, logp)
  root = np.sqrt(0.5)
  expected = [-0.75 * root, (-1 - root) / 2, (1 + root) / 2, (-1 + root) / 2]
  np.testing.assert_allclose(coefficient, expected, rtol=1e-5)


def test_high_entropy_is_the_clipped_surrogate(toy):
  """E1: H = log 2 far above rho = -10 leaves PPOClip."""
  traj, logp = rollout(
    toy, [0, 1, 2, 3], [0, 1, 1, 1], [1, -1, 1, -1], [1.5, 0.7, 0.9, 1.1]
  )
  copo = push(losses.ConsistencyClip(rho=-10.0), traj, logp)
  ppo = push(losses.PPOClip(), traj, logp)
  np.testing.assert_allclose(copo, ppo, rtol=1e-5)


def test_equal_returns_have_no_global_advantage(toy):
  """E0: with three equal means B is exactly 0, and shifts change nothing."""
  for shift in (0.0, 0.1):
    reward = np.array([1, 0, 0, 1, 1, 0]) + shift
    traj, _ = rollout(toy, [0] * 6, reward, np.zeros(6), np.ones(6))
    _, shared = losses.ConsistencyClip()._blend(traj)
    np.testing.assert_array_equal(shared, 0)


@pytest.mark.parametrize('reward', np.linspace(0.1, 1.1, 11))
def test_equal_rewards_of_unlike_groups_are_equal(toy, reward):
  """E0: means over three and over four rows, which differ in float32."""
  valid = np.ones(12)
  valid[3] = 0
  traj = toy.trajectories(
    np.ones((12, 1)),
    group_size=4,
    valid_B=valid,
    reward_B=np.full(12, reward),
    extras={'cluster_id_B': np.zeros(12)},
  )
  _, shared = losses.ConsistencyClip(eps=1e-9)._blend(traj)
  np.testing.assert_array_equal(shared, 0)


def test_equal_means_of_unlike_rewards_are_equal(toy):
  """E0: (.7, .2), (.6, .3) and (.2, .7)."""
  rewards = [0.7, 0.2, 0.6, 0.3, 0.2, 0.7]
  traj, _ = rollout(toy, [0] * 6, rewards, np.zeros(6), np.ones(6))
  _, shared = losses.ConsistencyClip(eps=1e-9)._blend(traj)
  np.testing.assert_array_equal(shared, 0)
