"""Credit by turns: by hand, reductions, and the unbiased baseline."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit, shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.types import Turns

# Two episodes of a group: turns of two, one and two tokens, and of one and two,
# with one observation token in each.
TURN = np.array([[0, 0, 1, 1, 2, 2], [0, 1, 1, 1, -1, -1]])
MASK = np.array([[1, 1, 0, 1, 1, 1], [1, 0, 1, 1, 0, 0]], np.float32)


def make(toy, reward, state=None, action=None, turn=None, mask=None, **fields):
  """A group of episodes; reward: of each turn, [B, K]."""
  reward = np.asarray(reward, np.float32)
  unknown = np.full(reward.shape, -1)
  turns = Turns(
    reward_BK=reward,
    state_BK=unknown if state is None else np.asarray(state),
    action_BK=unknown if action is None else np.asarray(action),
    calls_BK=np.zeros(reward.shape, np.int32),
  )
  mask = MASK if mask is None else np.asarray(mask, np.float32)
  return toy.trajectories(
    mask,
    group_size=len(mask),
    turn_BT=TURN if turn is None else np.asarray(turn),
    turns=turns,
    reward_B=reward.sum(axis=1),
    **fields,
  )


def tokens_of(reward):
  """One token a turn: mask and turns [B, K] of rewards of that shape."""
  reward = np.asarray(reward, np.float32)
  turn = np.tile(np.arange(reward.shape[1]), (len(reward), 1))
  return {'turn': turn, 'mask': np.ones_like(reward)}


def test_rewards_lie_at_the_ends_of_turns(toy):
  """By hand; what shaping has added to the sum is at the end of the row."""
  traj = make(toy, [[1.0, 2.0, 4.0], [8.0, 16.0, 0.0]])
  found = shaping.TurnRewards()(
    CreditContext(traj.reward_B + jnp.array([0.5, 0.0]), traj)
  ).value
  expected = [[0, 1, 0, 2, 0, 4.5], [8, 0, 0, 16, 0, 0]]
  np.testing.assert_array_equal(found, expected)
  plain = traj.replace(turns=None, turn_BT=None)
  found = shaping.TurnRewards()(CreditContext(traj.reward_B, plain)).value
  np.testing.assert_array_equal(found, [[0] * 5 + [7], [0, 0, 0, 24, 0, 0]])


def test_turns_that_touch_are_two(toy):
  """An empty observation has no token; returns at gamma 1/2 by hand."""
  traj = make(
    toy,
    [[1.0, 2.0, 4.0]],
    mask=[[1, 1, 1, 1]],
    turn=[[0, 0, 1, 2]],
  )
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_array_equal(reward, [[0, 1, 2, 4]])
  found = credit.TurnReturn(gamma=0.5)(CreditContext(reward, traj)).value
  np.testing.assert_array_equal(found, [[3, 3, 4, 4]])


def test_returns_do_not_count_tokens(toy):
  """Invariance: a word of more tokens in a turn changes no return."""
  traj = make(toy, [[1.0, 2.0, 4.0], [8.0, 16.0, 0.0]])
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  found = credit.TurnReturn(gamma=0.5)(CreditContext(reward, traj)).value
  expected = [[3, 3, 0, 4, 4, 4], [16, 0, 16, 16, 0, 0]]
  np.testing.assert_array_equal(found, expected)


def test_leave_one_out_by_hand(toy):
  """Returns (7, 6, 4) and (24, 16); the last turn of row 0 has no other row."""
  traj = make(toy, [[1.0, 2.0, 4.0], [8.0, 16.0, 0.0]])
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  found = credit.TurnLeaveOneOut()(CreditContext(reward, traj)).value
  expected = [[-17, -17, 0, -10, 4, 4], [17, 0, 10, 10, 0, 0]]
  np.testing.assert_array_equal(found, expected)


def test_one_turn_of_leave_one_out_is_rloo(toy):
  """And an invalid row has neither credit nor weight in the baseline."""
  traj = toy.trajectories(
    np.ones((4, 2)),
    group_size=4,
    reward_B=np.array([1.0, 0.0, 5.0, 3.0]),
    valid_B=np.array([1.0, 1.0, 0.0, 1.0]),
  )
  found = credit.TurnLeaveOneOut()(CreditContext(traj.reward_B, traj)).value
  expected = credit.LeaveOneOut()(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_allclose(found, np.stack([expected] * 2, 1), rtol=1e-6)


def test_stop_or_go_has_the_true_gradient(toy):
  """Unbiased: a turn pays 1, after it the policy continues with 1/2.

  d E[return] / d logit of continuing at turn k is exact by enumeration:
  P(reach k) p (1 - p) E[rest | go]; the estimate is a mean over 20,000 groups.
  """
  p, K, G, groups = 0.5, 4, 8, 20_000
  rng = np.random.default_rng(0)
  go = rng.random((groups * G, K - 1)) < p
  played = 1 + np.cumprod(go, axis=1).sum(axis=1)
  live = np.arange(K)[None] < played[:, None]
  reach = [p**k for k in range(K - 1)]
  rest = [sum(p**j for j in range(K - 1 - k)) for k in range(K - 1)]
  true = [r * p * (1 - p) * e for r, e in zip(reach, rest, strict=True)]
  assert np.allclose(true, [0.4375, 0.1875, 0.0625])
  traj = toy.trajectories(
    live.astype(np.float32),
    group_size=G,
    turn_BT=np.where(live, np.arange(K), -1),
    turns=Turns(
      reward_BK=live.astype(np.float32),
      state_BK=np.full(live.shape, -1),
      action_BK=np.full(live.shape, -1),
      calls_BK=np.zeros(live.shape, np.int32),
    ),
    reward_B=live.sum(axis=1).astype(np.float32),
  )
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  advantage = np.asarray(
    credit.TurnLeaveOneOut()(CreditContext(reward, traj)).value
  )
  # d log pi / d logit; the decision of turn k is made by its token.
  score = np.where(go, 1 - p, -p) * live[:, : K - 1]
  found = (advantage[:, : K - 1] * score).reshape(groups, G, -1).mean(axis=1)
  error = found.std(axis=0) / groups**0.5
  assert (np.abs(found.mean(axis=0) - true) < 4 * error).all()
  # Centring the reward of every turn: all that was reached is equal.
  mean = live.reshape(groups, G, K)
  count = mean.sum(axis=1, keepdims=True)
  centered = (mean - np.where(mean, 1.0, 0.0) * (count > 0)).reshape(-1, K)
  biased = np.cumsum(centered[:, ::-1], axis=1)[:, ::-1][:, : K - 1]
  assert np.abs((biased * score).mean()) == 0 < min(true)


def test_gae_of_turns_by_hand(toy):
  """V (.5, .25) at the starts, r (1, 2), gamma .5, lam 1: A = (1.5, 1.75)."""
  values = np.array([[0.5, 9.0, 9.0, 0.25, 9.0]])
  traj = make(
    toy,
    [[1.0, 2.0]],
    mask=[[1, 1, 0, 1, 1]],
    turn=[[0, 0, 1, 1, 1]],
    values_BT=values,
  )
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  found = credit.TurnGAE(gamma=0.5, lam=1.0)(CreditContext(reward, traj)).value
  np.testing.assert_allclose(found, [[1.5, 1.5, 0, 1.75, 1.75]], rtol=1e-6)
  target = credit.TurnLambdaReturn(gamma=0.5, lam=1.0)(
    CreditContext(reward, traj)
  ).value
  np.testing.assert_allclose(target, [[2, 2, 0, 2, 2]], rtol=1e-6)
  # delta_0 = 1 + .5 * .25 - .5; lam multiplies what follows: 1.75 * .5 * .4.
  found = credit.TurnGAE(gamma=0.5, lam=0.4)(CreditContext(reward, traj)).value
  np.testing.assert_allclose(found[0, 0], 0.625 + 0.35, rtol=1e-6)


def test_gae_of_turns_goes_on_behind_a_cut_episode(toy):
  """V (.5, .25, then .75 at the last token), r (1, 2), gamma .5, lam 1.

  delta_1 = 2 + .5 .75 - .25 = 2.125, A_0 = 1 + .125 - .5 + .5 2.125 = 1.6875;
  the second row has finished, and in the third the last turn is the first.
  """
  values = np.array([[0.5, 9.0, 9.0, 0.25, 0.75]] * 3)
  traj = make(
    toy,
    [[1.0, 2.0], [1.0, 2.0], [1.0, 0.0]],
    mask=[[1, 1, 0, 1, 1], [1, 1, 0, 1, 1], [0, 0, 0, 1, 1]],
    turn=[[0, 0, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]],
    values_BT=values,
    finished_B=np.array([False, True, False]),
  )
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  fields = {'gamma': 0.5, 'lam': 1.0}
  found = credit.TurnGAE(**fields, bootstrap=True)(
    CreditContext(reward, traj)
  ).value
  np.testing.assert_allclose(
    found,
    [
      [1.6875, 1.6875, 0, 2.125, 2.125],
      [1.5, 1.5, 0, 1.75, 1.75],
      [0, 0, 0, 1.125, 1.125],
    ],
    rtol=1e-6,
  )
  target = credit.TurnLambdaReturn(**fields, bootstrap=True)(
    CreditContext(reward, traj)
  ).value
  np.testing.assert_allclose(target[0], [2.1875] * 2 + [0] + [2.375] * 2)
  plain = credit.TurnGAE(**fields)(CreditContext(reward, traj)).value
  np.testing.assert_allclose(plain[0], found[1], rtol=1e-6)


def test_a_response_at_the_token_limit_is_not_cut(toy):
  """One of three unfinished responses waits: V is .75 after it. V .5 at the
  first token, r 2, gamma .5: A = 2 - .5, and 2 + .375 - .5. A record of turns
  makes the third an episode, which the limit has cut.

  V .5 at the first token, r 2, gamma .5: A = 2 - .5, and 2 + .375 - .5. A
  record of turns makes the third an episode, which the limit has cut.
  """
  values = np.array([[0.5, 0.75]] * 2)
  traj = toy.trajectories(
    np.ones((2, 2)),
    group_size=1,
    values_BT=values,
    finished_B=np.zeros(2, bool),
    extras={'waits_B': np.array([0.0, 1.0])},
  )
  piece = credit.TurnGAE(gamma=0.5, lam=1.0, bootstrap=True)
  found = piece(CreditContext(np.full(2, 2.0, np.float32), traj)).value
  np.testing.assert_allclose(found, [[1.5] * 2, [1.875] * 2], rtol=1e-6)
  episode = make(
    toy,
    [[2.0]],
    mask=[[1, 1]],
    turn=[[0, 0]],
    values_BT=values[:1],
    finished_B=np.zeros(1, bool),
  )
  found = piece(CreditContext(np.full(1, 2.0, np.float32), episode)).value
  np.testing.assert_allclose(found, [[1.875] * 2], rtol=1e-6)


@pytest.mark.parametrize('lam', [0.0, 0.7])
def test_behind_turns_of_one_token_is_what_t_ppo_has(toy, lam):
  """Reduction: ExtendedGAE, with rewards by token."""
  rng = np.random.default_rng(4)
  reward = rng.normal(size=(2, 5))
  traj = make(
    toy,
    reward,
    values_BT=rng.normal(size=(2, 5)),
    finished_B=np.array([False, True]),
    extras={'waits_B': np.array([1.0, 0.0])},
    **tokens_of(reward),
  )
  shaped = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  expected = credit.ExtendedGAE(gamma=0.9, lam=lam)(
    CreditContext(shaped, traj)
  ).value
  found = credit.TurnGAE(gamma=0.9, lam=lam, bootstrap=True)(
    CreditContext(shaped, traj)
  ).value
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('lam', [0.0, 0.7, 1.0])
def test_gae_of_turns_of_one_token_is_gae(toy, lam):
  rng = np.random.default_rng(0)
  reward = rng.normal(size=(2, 5))
  values = rng.normal(size=(2, 5))
  traj = make(toy, reward, values_BT=values, **tokens_of(reward))
  shaped = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  expected = credit.GAE(gamma=0.9, lam=lam)(CreditContext(shaped, traj)).value
  found = credit.TurnGAE(gamma=0.9, lam=lam)(CreditContext(shaped, traj)).value
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
  found = credit.BiLevelGAE(gamma_turn=0.9, gamma=0.3, lam=lam)(
    CreditContext(shaped, traj)
  ).value
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
  ('gamma', 'expected'),
  [(0.9, [1.2, 1.0, 0.4, 0.2]), (1.0, [1.3, 1.1, 0.4, 0.2])],
)
def test_two_levels_by_hand(toy, gamma, expected):
  """Rewards .5 and 1 at tokens 1 and 3, V .2 .4 .6 .8; at 1 it is GAE."""
  values = np.array([[0.2, 0.4, 0.6, 0.8]])
  traj = make(
    toy,
    [[0.5, 1.0]],
    mask=[[1, 1, 1, 1]],
    turn=[[0, 0, 1, 1]],
    values_BT=values,
  )
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  found = credit.BiLevelGAE(gamma_turn=gamma)(CreditContext(reward, traj)).value
  np.testing.assert_allclose(found, [expected], rtol=1e-5)
  if gamma == 1.0:
    plain = credit.GAE(gamma=1.0, lam=1.0)(CreditContext(reward, traj)).value
    np.testing.assert_allclose(found, plain, rtol=1e-5)


# Episodes s0 s1 s2 with rewards 0 0 10, and s0 s1 with 0 0.
REWARD = [[0.0, 0.0, 10.0], [0.0, 0.0, 0.0]]
ROWS = {
  'mask': [[1, 1, 1], [1, 1, 0]],
  'turn': [[0, 1, 2], [0, 1, -1]],
  'state': [[0, 1, 2], [0, 1, -1]],
}


def test_step_groups_by_hand(toy):
  """Returns 8.1 9 10 at gamma .9; s0 +-4.05, s1 +-4.5, s2 only; A_E +-5."""
  traj = make(toy, REWARD, **ROWS)
  episode_B = credit.GroupCenter()(CreditContext(traj.reward_B, traj)).value
  found = credit.StepGroups(gamma=0.9)(CreditContext(episode_B, traj)).value
  expected = [[9.05, 9.5, 5.0], [-9.05, -9.5, 0.0]]
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  half = credit.StepGroups(gamma=0.9, weight=0.5)(
    CreditContext(episode_B, traj)
  ).value
  np.testing.assert_allclose(half[0], [7.025, 7.25, 5.0], rtol=1e-5)
  scaled = credit.StepGroups(gamma=0.9, scale=True)(
    CreditContext(0 * episode_B, traj)
  ).value
  root = 0.5**0.5
  np.testing.assert_allclose(
    scaled, [[root, root, 0], [-root, -root, 0]], rtol=1e-4
  )
  # An episode that meets a state twice is compared with itself, too.
  again = make(toy, REWARD, **{**ROWS, 'state': [[0, 0, 2], [0, 1, -1]]})
  twice = credit.StepGroups(gamma=0.9)(
    CreditContext(0 * episode_B, again)
  ).value
  np.testing.assert_allclose(
    twice, [[8.1 - 5.7, 9 - 5.7, 0], [-5.7, 0, 0]], rtol=1e-5
  )


def test_step_groups_reduce_to_the_episode(toy):
  """weight 0 is GRPO; one turn of a shared prompt is (1 + weight) GRPO."""
  traj = make(toy, REWARD, **ROWS)
  episode_B = credit.GroupCenter()(CreditContext(traj.reward_B, traj)).value
  found = credit.StepGroups(weight=0.0)(CreditContext(episode_B, traj)).value
  np.testing.assert_array_equal(found, episode_B[:, None] * traj.mask_BT)
  plain = toy.trajectories(
    np.ones((3, 2)), group_size=3, reward_B=np.array([1.0, 0.0, 5.0])
  )
  episode_B = credit.GroupCenter()(CreditContext(plain.reward_B, plain)).value
  found = credit.StepGroups(weight=0.5)(CreditContext(episode_B, plain)).value
  expected = 1.5 * np.stack([episode_B] * 2, axis=1)
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_states_that_are_met_once(toy):
  """One of s0, s1, s2; all of two rows in other states; none of a
  shared one.
  """

  def share(traj):
    return float(credit.StepGroups().measure(traj)['credit/singleton_fraction'])

  assert share(make(toy, REWARD, **ROWS)) == pytest.approx(1 / 3)
  other = {**ROWS, 'state': [[0, 1, 2], [3, 4, -1]]}
  assert share(make(toy, REWARD, **other)) == 1
  same = {**ROWS, 'state': [[0, 0, 0], [0, 0, -1]]}
  assert share(make(toy, REWARD, **same)) == 0
  alone = make(toy, REWARD, valid_B=np.array([1.0, 0.0]), **ROWS)
  assert share(alone) == 1


def test_step_groups_leave_out_invalid_rows(toy):
  traj = make(toy, REWARD, valid_B=np.array([1.0, 0.0]), **ROWS)
  found = credit.StepGroups()(CreditContext(jnp.zeros(2), traj)).value
  np.testing.assert_array_equal(found, np.zeros((2, 3)))


FOUR = [0.866, 0.866, -0.866, -0.866]


def shared(toy, state, action, history=0, advantage=FOUR):
  """SharedSteps of rows of turns of one token."""
  reward = np.zeros(np.shape(state))
  traj = make(toy, reward, state=state, action=action, **tokens_of(reward))
  return credit.SharedSteps(history=history)(
    CreditContext(jnp.array(advantage), traj)
  ).value


def test_shared_steps_by_hand(toy):
  """The step of rows 0 and 2 has 0; a step with another next state is other."""
  state = [[0, 1], [0, 2], [0, 1], [0, 3]]
  action = [[5, 6], [5, 6], [5, 7], [5, 6]]
  found = shared(toy, state, action)
  np.testing.assert_allclose(
    found,
    [[0, 0.866], [0.866, 0.866], [0, -0.866], [-0.866, -0.866]],
    rtol=1e-6,
  )


def test_history_separates_equal_steps(toy):
  """The second steps are equal, the first are not."""
  state, action = [[0, 1], [2, 1]], [[5, 6], [5, 6]]
  ones = [1.0, 0.0]
  found = shared(toy, state, action, advantage=ones)
  np.testing.assert_array_equal(found, [[1, 0.5], [0, 0.5]])
  found = shared(toy, state, action, history=1, advantage=ones)
  np.testing.assert_array_equal(found, [[1, 1], [0, 0]])
  same = shared(toy, [[0, 1]] * 2, [[5, 6]] * 2, history=1, advantage=ones)
  np.testing.assert_array_equal(same, np.full((2, 2), 0.5))


def test_shared_steps_preserve_the_sum(toy):
  """Over all steps; without shared ones nothing changes, all shared give 0."""
  rng = np.random.default_rng(1)
  state, action = rng.integers(0, 3, (2, 4, 6))
  found = shared(toy, state, action)
  np.testing.assert_allclose(found.sum(), 6 * sum(FOUR), atol=1e-5)
  unknown = np.full((4, 6), -1)
  found = shared(toy, state, unknown)
  np.testing.assert_array_equal(found, np.tile(np.float32(FOUR), (6, 1)).T)
  same = shared(toy, [[0, 1, 2]] * 4, [[3, 3, 3]] * 4)
  np.testing.assert_allclose(same, np.zeros((4, 3)), atol=1e-6)


def test_shared_steps_lower_the_variance_of_advantages(toy):
  """A mean over equal steps: by what it varies within them, here exactly.

  Rows with A 0.866 and -0.866 share a step of variance 0.75; the other eight
  steps are met once: 0.75 8 / 10 is left.
  """
  rng = np.random.default_rng(3)
  state, action = rng.integers(0, 2, (2, 4, 6))
  found = np.asarray(shared(toy, state, action))
  assert found.var() < np.var(FOUR)
  state = np.arange(10).reshape(2, 5)
  state[1, 0] = 0
  action = np.zeros((2, 5), int)
  state[1, 1] = state[0, 1]  # the same next state
  apart = np.asarray(
    shared(toy, state, action, advantage=[0.866, -0.866]), np.float64
  )
  np.testing.assert_allclose(apart.var(), 0.866**2 * 0.8, rtol=1e-5)


def test_order_of_rows_changes_nothing(toy):
  """Permuting the rows of a group permutes their credit."""
  rng = np.random.default_rng(2)
  reward, state = rng.normal(size=(4, 3)), rng.integers(0, 3, (4, 3))
  order = np.array([2, 0, 3, 1])
  pieces = (credit.StepGroups(), credit.SharedSteps(), credit.TurnLeaveOneOut())
  for one in pieces:

    def fields(x):
      return {'state': x, 'action': x}

    traj = make(toy, reward, **fields(state), **tokens_of(reward))
    moved = make(
      toy, reward[order], **fields(state[order]), **tokens_of(reward)
    )
    np.testing.assert_allclose(
      one(CreditContext(moved.reward_B, moved)).value,
      one(CreditContext(traj.reward_B, traj)).value[order],
      atol=1e-5,
    )


def test_returns_over_the_largest_of_the_episode_by_hand(toy):
  """EPO: scores (0, 1, 0, .6) have w = .99, 1, .37404, .37782.

  G = .6 at the end, .594, 1.58806, 1.5721794: over 1.58806. A row of no reward
  has 0; turns count alike, and so do the tokens of a turn.
  """
  traj = make(
    toy,
    [[0.0, 1.0, 0.0, 0.6], [0.0, 0.0, 0.0, 0.0]],
    mask=[[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]],
    turn=[[0, 1, 1, 2, 3], [0, 1, 2, 3, 3]],
  )
  reward = shaping.TurnRewards()(CreditContext(traj.reward_B, traj)).value
  found = credit.EpisodeNormalised(gamma=0.99)(
    CreditContext(reward, traj)
  ).value
  share = np.array([0.99, 0.5, 0.5, 0.374041, 0.377820]) / 4
  np.testing.assert_allclose(found, [share, [0] * 5], rtol=1e-5)
  twice = credit.EpisodeNormalised(gamma=0.99)(
    CreditContext(-2 * reward, traj)
  ).value
  np.testing.assert_allclose(twice, -found, rtol=1e-6)


def test_one_turn_is_its_mean_likelihood(toy):
  """Reduction: 1/T on the tokens of a response, and the sign of its reward."""
  traj = make(toy, [[1.0], [-3.0]], turn=[[0, 0], [0, 0]], mask=np.ones((2, 2)))
  found = credit.EpisodeNormalised()(CreditContext(traj.reward_B, traj)).value
  np.testing.assert_allclose(found, [[0.5, 0.5], [-0.5, -0.5]])
