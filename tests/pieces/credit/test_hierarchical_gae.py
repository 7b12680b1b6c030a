"""HiPER's advantages, by hand and by their reductions."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import credit, losses
from rl_jax.pieces.roles import CreditContext, LossContext
from rl_jax.types import Turns

PARTS = [1, 2, 3]  # a turn: switch, sub-goal, action


def episode(toy, reward, high, low, term, switch, finished=True):
  """One row, three tokens a turn; values of each turn at their places."""
  K = len(reward)
  reward = np.asarray([reward], np.float32)
  unknown = np.full((1, K), -1)
  values = np.full((1, 3 * K, 3), 99.0, np.float32)  # read nowhere else
  for k in range(K):
    values[0, 3 * k, 0], values[0, 3 * k, 2] = high[k], term[k]
    values[0, 3 * k + 2, 1] = low[k]
  flag = np.zeros((1, 3 * K), np.float32)
  flag[0, ::3] = switch
  return toy.trajectories(
    np.ones((1, 3 * K)),
    group_size=1,
    turn_BT=np.repeat(np.arange(K), 3)[None],
    turns=Turns(
      reward_BK=reward,
      state_BK=unknown,
      action_BK=unknown,
      calls_BK=np.zeros((1, K), np.int32),
    ),
    values_BTH=values,
    finished_B=np.asarray([finished]),
    extras={'span_BT': np.asarray([PARTS * K]), 'switch_BT': flag},
  )


def found(piece, traj, reward):
  """Advantages by turn and part, [K, 3]."""
  reward_BT = np.zeros(traj.mask_BT.shape, np.float32)
  reward_BT[0, 2::3] = reward
  return np.asarray(piece(CreditContext(reward_BT, traj)).value).reshape(-1, 3)


def gae(**fields):
  return credit.HierarchicalGAE(normalise=False, **fields)


EXAMPLE = {
  'reward': [0, 0, 0, 1],
  'high': [0.5, 9, 0.6, 9],
  'low': [0.4, 0.5, 0.6, 0.7],
  'term': [0.1, 0.2, 0.3, 0.4],
  'switch': [1, 0, 1, 0],
}


def test_two_segments_by_hand(toy):
  """gamma 0.9, lam 1, segments [0, 1], [2, 3]: the example of the digest.

  A_term = G - V_term with G = 0.9 0.9 0.6, 0.9 0.6, 0.9, 1.
  """
  piece = gae(gamma=0.9, lam_segment=1.0)
  advantage = found(piece, episode(toy, **EXAMPLE), EXAMPLE['reward'])
  low = [0.086, 0.04, 0.3, 0.3]
  high = [0.229, 0, 0.3, 0]
  term = [0.386, 0.34, 0.6, 0.6]
  np.testing.assert_allclose(
    advantage, np.stack([term, high, low], 1), atol=1e-6
  )


def test_targets_are_advantages_and_values_at_their_places(toy):
  """Elsewhere the values themselves, which the loss does not read."""
  traj = episode(toy, **EXAMPLE)
  reward_BT = np.zeros((1, 12), np.float32)
  reward_BT[0, 11] = 1.0
  target = credit.HierarchicalReturn(gamma=0.9, lam_segment=1.0)
  returns = np.asarray(target(CreditContext(reward_BT, traj)).value)[0]
  np.testing.assert_allclose(
    returns[2::3, 1], [0.486, 0.54, 0.9, 1.0], atol=1e-6
  )
  np.testing.assert_allclose(returns[[0, 6], 0], [0.729, 0.9], atol=1e-6)
  np.testing.assert_allclose(
    returns[::3, 2], [0.486, 0.54, 0.9, 1.0], atol=1e-6
  )
  assert returns[3, 0] == 9 and (returns == 99).sum() == 36 - 3 * 4
  traj = traj.replace(returns_BTH=returns[None] + 1.0)
  stats = {'value_heads': returns[None]}
  loss = losses.HierarchicalValue()(
    LossContext(stats, traj, jax.random.key(0))
  ).value
  # Half a squared error of 1 for each head that is read at the token.
  expected = [[1.0, 0, 0.5, 0.5, 0, 0.5] * 2]
  np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_one_segment_is_gae_over_turns(toy):
  """Without a switch, at the action tokens; against TurnGAE."""
  own = {**EXAMPLE, 'switch': [0, 0, 0, 0]}
  traj = episode(toy, **own)
  advantage = found(gae(gamma=0.9, lam_turn=0.8), traj, own['reward'])
  first = np.zeros((1, 12), np.float32)
  first[0, ::3] = own['low']
  plain = credit.TurnGAE(gamma=0.9, lam=0.8)
  expected = found(plain, traj.replace(values_BT=first), own['reward'])
  np.testing.assert_allclose(advantage[:, 2], expected[:, 2], rtol=1e-5)


def test_a_segment_a_turn_is_gae_with_the_lambda_of_segments(toy):
  own = {**EXAMPLE, 'switch': [1, 1, 1, 1], 'high': [0.5, 0.3, 0.6, 0.2]}
  traj = episode(toy, **own)
  advantage = found(gae(gamma=0.9, lam_segment=0.7), traj, own['reward'])
  first = np.zeros((1, 12), np.float32)
  first[0, ::3] = own['high']
  plain = credit.TurnGAE(gamma=0.9, lam=0.7)
  expected = found(plain, traj.replace(values_BT=first), own['reward'])
  np.testing.assert_allclose(advantage[:, 1], expected[:, 1], rtol=1e-5)


def test_rewards_behind_a_segment_do_not_reach_its_actions(toy):
  later = {**EXAMPLE, 'reward': [0, 0, 5, -2]}
  one, other = (
    found(gae(), episode(toy, **own), own['reward']) for own in (EXAMPLE, later)
  )
  np.testing.assert_array_equal(one[:2, 2], other[:2, 2])
  assert (one[2:, 2] != other[2:, 2]).all()


@pytest.mark.parametrize('bootstrap', [True, False])
def test_behind_a_cut_episode_are_its_own_values(toy, bootstrap):
  """gamma 1: the last action has r + V_low - V_low, or r - V_low."""
  traj = episode(toy, **EXAMPLE, finished=False)
  advantage = found(gae(bootstrap=bootstrap), traj, EXAMPLE['reward'])
  np.testing.assert_allclose(advantage[3, 2], 1.0 if bootstrap else 0.3)
  # The segment: 1 + V_high - V_high of its start, or 1 - V_high.
  expected = 1.0 if bootstrap else 0.4
  np.testing.assert_allclose(advantage[2, 1], expected, rtol=1e-6)


def test_levels_are_normalised_over_the_turns_that_use_them(toy):
  advantage = found(
    credit.HierarchicalGAE(gamma=0.9, lam_segment=1.0),
    episode(toy, **EXAMPLE),
    EXAMPLE['reward'],
  )
  np.testing.assert_allclose(advantage[[0, 2], 1], [-1, 1], rtol=1e-4)
  assert (advantage[[1, 3], 1] == 0).all()
  for part in (0, 2):
    np.testing.assert_allclose(advantage[:, part].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(advantage[:, part].std(), 1, rtol=1e-5)


def test_equal_advantages_are_exactly_zero(toy):
  """.9 at the end, values 0, gamma and lambdas 1: all levels are .9, whose
  float32 mean over three turns is not; over 1e-8 that would be .86."""
  zeros = [0.0] * 3
  reward = [0.0, 0.0, 0.9]
  traj = episode(toy, reward, zeros, zeros, zeros, [1, 0, 0])
  piece = credit.HierarchicalGAE(lam_segment=1.0)
  np.testing.assert_array_equal(found(piece, traj, reward), np.zeros((3, 3)))


@pytest.mark.parametrize('gamma', [0.9, 0.95, 0.99])
@pytest.mark.parametrize('last', [0.9, 0.7, 0.3])
def test_a_right_critic_leaves_no_advantage(toy, gamma, last):
  """E0: V = gamma^k r; what rounding leaves is not scaled to deviation 1."""
  value = [gamma ** (3 - k) * last for k in range(4)]
  reward = [0.0, 0.0, 0.0, last]
  traj = episode(toy, reward, value, value, value, [1, 0, 0, 0])
  piece = credit.HierarchicalGAE(gamma=gamma)
  np.testing.assert_array_equal(found(piece, traj, reward), np.zeros((4, 3)))


def test_a_turn_without_an_action_is_action_as_a_whole(toy):
  """Second turn: A_low 0.04 of the example on switch, sub-goal and the rest.

  Its value is read at its first token, and A_term is normalised over the three
  turns that have a switch.
  """
  traj = episode(toy, **EXAMPLE)
  span = np.asarray(traj.extras['span_BT']).copy()
  values = np.asarray(traj.values_BTH).copy()
  span[0, 5], values[0, 3, 1] = 0, EXAMPLE['low'][1]
  traj = traj.replace(
    values_BTH=values, extras={**traj.extras, 'span_BT': span}
  )
  fields = {'gamma': 0.9, 'lam_segment': 1.0}
  advantage = found(gae(**fields), traj, EXAMPLE['reward'])
  np.testing.assert_allclose(advantage[1], [0.04] * 3, atol=1e-6)
  np.testing.assert_allclose(advantage[0], [0.386, 0.229, 0.086], atol=1e-6)
  scaled = found(credit.HierarchicalGAE(**fields), traj, EXAMPLE['reward'])
  term = scaled[[0, 2, 3], 0]
  np.testing.assert_allclose([term.mean(), term.std()], [0, 1], atol=1e-5)
