"""Critics of recorded turns, and the advantages of sampled actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method, validate
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum
from rl_jax.pieces.policies import Average
from rl_jax.pieces.roles import CreditContext, LossContext
from rl_jax.types import Turns

KEY = jax.random.key(0)
# A turn of two tokens, an observation, a turn of one; 7 is never read.
MASK = [[1, 1, 0, 1]]
BEFORE = np.array([[[0.5, 0.25], [7, 7], [7, 7], [0.4, 0.8]]])
AFTER = np.array([[[7, 7], [0.6, 0.7], [7, 7], [1.0, 0.9]]])
# By hand: r is 2 at the end, gamma 0.5; V takes Q, Q takes r + gamma V.
FIRST, LAST = [0.6, 0.7, 0.2, 0.4], [1.0, 0.9, 2.0, 2.0]


def rows(toy, shift=0.0, **fields):
  """The row with its heads V_1, V_2 before, and Q_1, Q_2 after tokens."""
  nothing = np.full_like(BEFORE, 7.0)
  before = np.concatenate([BEFORE + shift, nothing], axis=-1)
  after = np.concatenate([nothing, AFTER + shift], axis=-1)
  traj = toy.trajectories(
    MASK,
    group_size=1,
    values_BTH=before,
    extras={'value_heads_after': after},
    **fields,
  )
  return traj, {'value_heads': before, 'value_heads_after': after}


def test_targets_by_hand(toy):
  """The targets of a turn are on its tokens."""
  traj, _ = rows(toy)
  found = credit.TwinTargets(gamma=0.5)(
    CreditContext(jnp.full(1, 2.0), traj)
  ).value
  expected = [[FIRST, FIRST, [0] * 4, LAST]]
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  undiscounted = credit.TwinTargets(gamma=1.0)(
    CreditContext(jnp.full(1, 2.0), traj)
  ).value
  np.testing.assert_allclose(undiscounted[0, 0, 2:], [0.4, 0.8], rtol=1e-6)


def test_targets_of_slow_critics_by_hand(toy):
  """E1: V takes their Q, Q takes r + gamma V of theirs, not of the own ones.

  Slow V before tokens 0 and 3: .1, .3 and .2, .4; slow Q after 1 and 3: .7, .9
  and .8, 1.
  """
  traj, _ = rows(toy)
  slow = {
    'value_0_before_slow_critics': [[0.1, 7, 7, 0.2]],
    'value_1_before_slow_critics': [[0.3, 7, 7, 0.4]],
    'value_2_after_slow_critics': [[7, 0.7, 7, 0.8]],
    'value_3_after_slow_critics': [[7, 0.9, 7, 1.0]],
  }
  slow = {name: jnp.asarray(x, jnp.float32) for name, x in slow.items()}
  traj = traj.replace(extras={**traj.extras, **slow})
  piece = credit.TwinTargets(gamma=0.5, decay=0.9)
  found = piece(CreditContext(jnp.full(1, 2.0), traj)).value
  first, last = [0.7, 0.9, 0.1, 0.2], [0.8, 1.0, 2.0, 2.0]
  np.testing.assert_allclose(found, [[first, first, [0] * 4, last]], rtol=1e-6)
  assert {need.name for need in piece.needs[2:]} == set(slow)
  assert piece.policies == {'slow_critics': Average(decay=0.9)}
  assert credit.TwinTargets().policies == {}


def test_rewards_of_turns_count_where_they_are_earned(toy):
  """E1: [B, T], here a reward of the first turn and one of the second."""
  traj, _ = rows(toy)
  reward_BT = jnp.array([[0.0, 3.0, 0.0, 2.0]])
  found = credit.TwinTargets(gamma=0.5)(CreditContext(reward_BT, traj)).value
  np.testing.assert_allclose(found[0, 0, 2:], [3.2, 3.4], rtol=1e-6)


def test_loss_by_hand(toy):
  """V at the first token of a turn, Q at the last: .01 + .2025 and so on."""
  traj, stats = rows(toy, returns_BTH=np.array([[FIRST, FIRST, [0] * 4, LAST]]))
  found = losses.TwinCritics()(
    LossContext(jax.tree.map(jnp.asarray, stats), traj, KEY)
  ).value
  expected = [[0.2125, 0.25, 0.0, 0.37 + 2.21]]
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_after_a_cut_there_is_no_target(toy):
  """The last Q loses its error of 1 + 1.21, V keeps .36 + .01.

  A response that ended at the token limit has no record of turns, and keeps it.
  """
  unknown = np.full((1, 2), -1)
  turns = Turns(
    reward_BK=np.zeros((1, 2)),
    state_BK=unknown,
    action_BK=unknown,
    calls_BK=np.zeros((1, 2), np.int32),
  )
  traj, stats = rows(
    toy,
    returns_BTH=np.array([[FIRST, FIRST, [0] * 4, LAST]]),
    finished_B=np.zeros(1, bool),
    turn_BT=np.array([[0, 0, 1, 1]]),
    turns=turns,
  )
  stats = jax.tree.map(jnp.asarray, stats)
  found = losses.TwinCritics()(LossContext(stats, traj, KEY)).value
  np.testing.assert_allclose(found, [[0.2125, 0.25, 0.0, 0.37]], rtol=1e-5)
  response = traj.replace(turns=None, turn_BT=None)
  found = losses.TwinCritics()(LossContext(stats, response, KEY)).value
  np.testing.assert_allclose(found, [[0.2125, 0.25, 0.0, 2.58]], rtol=1e-5)


def test_only_records_train_critics(toy):
  """E0: with a mixture; otherwise samples do."""
  targets = np.array([[FIRST, FIRST, [0] * 4, LAST]])
  traj, stats = rows(toy, returns_BTH=targets)
  stats = jax.tree.map(jnp.asarray, stats)
  alone = losses.TwinCritics()(LossContext(stats, traj, KEY)).value
  for logged in (0.0, 1.0):
    extras = {**traj.extras, 'logged_B': jnp.full(1, logged)}
    found = losses.TwinCritics()(
      LossContext(stats, traj.replace(extras=extras), KEY)
    ).value
    np.testing.assert_array_equal(found, logged * alone)


def test_the_last_action_earns_its_reward(toy):
  """E1: of a row of one turn Q takes the reward, whatever V is."""
  traj, _ = rows(toy)
  traj = traj.replace(mask_BT=jnp.array([[1.0, 1.0, 0.0, 0.0]]))
  found = credit.TwinTargets()(CreditContext(jnp.full(1, 2.0), traj)).value
  np.testing.assert_allclose(found[0, 1], [0.6, 0.7, 2.0, 2.0], rtol=1e-6)


def test_a_state_is_worth_the_mean_of_its_recorded_actions(toy):
  """The gradient of V vanishes at the mean of three targets."""
  target_BTH = (
    jnp.zeros((3, 1, 4)).at[:, 0, :2].set(jnp.array([[0.1], [0.5], [0.9]]))
  )
  traj = toy.trajectories(np.ones((3, 1)), group_size=1, returns_BTH=target_BTH)

  def loss(value):
    heads = jnp.zeros((3, 1, 4))
    stats = {'value_heads': heads + value, 'value_heads_after': heads}
    return losses.TwinCritics()(LossContext(stats, traj, KEY)).value.sum()

  np.testing.assert_allclose(jax.grad(loss)(0.5), 0.0, atol=1e-6)
  np.testing.assert_allclose(jax.grad(loss)(0.6), 2 * 2 * 3 * 0.1, rtol=1e-5)


def test_advantages_by_hand(toy):
  """The larger Q after the last token less the larger V before the first."""
  traj, _ = rows(toy)
  found = credit.TwinAdvantage()(CreditContext(jnp.full(1, 9.0), traj)).value
  np.testing.assert_allclose(found, [1.0 - 0.5], rtol=1e-6)
  moved = credit.TwinAdvantage()(
    CreditContext(jnp.full(1, 9.0), rows(toy, shift=3.0)[0])
  ).value
  np.testing.assert_allclose(moved, found, rtol=1e-5)
  cut = traj.replace(finished_B=jnp.zeros(1, bool))
  np.testing.assert_array_equal(
    credit.TwinAdvantage()(CreditContext(jnp.ones(1), cut)).value, 0.0
  )


def test_four_heads_are_needed():
  """The message names the target and the number of outputs."""
  method = Method(
    losses=(losses.Reinforce(), losses.TwinCritics()),
    value_target=credit.LambdaReturn(),
    aggregation=SeqMeanTokenSum(),
  )
  with pytest.raises(ValueError, match='TwinCritics needs method.value_target'):
    validate(method, group_size=1, has_value_head=True, num_values=4)
  whole = method.replace(value_target=credit.TwinTargets())
  with pytest.raises(ValueError, match='num_values=4'):
    validate(whole, group_size=1, has_value_head=True, num_values=1)
  validate(whole, group_size=1, has_value_head=True, num_values=4)
