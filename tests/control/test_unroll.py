"""Worlds, actors and their histories."""

import math
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import actors, rows, worlds
from rl_jax.control.base import Step, declared
from rl_jax.control.unroll import episode_returns, histories, unroll

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOVES = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]


def keys(number, seed=0):
  return jax.random.split(jax.random.key(seed), number)


def host_room(size, goal, actions, horizon, *, order, key, key_door):
  """A DarkRoom by the rules as they are written, one step after the other."""
  cell, held, age, results = [size // 2] * 2, False, 0, []
  for action in actions:
    obs = cell[0] * size + cell[1] + (size**2 if held and key_door else 0)
    move = MOVES[order[action]]
    cell = [
      min(max(x + d, 0), size - 1) for x, d in zip(cell, move, strict=True)
    ]
    done, reward = False, float(cell == goal)
    if key_door:
      done = cell == goal and held
      reward = float(done) + float(cell == key and not held)
      held = held or cell == key
    age += 1
    last = done or age >= horizon
    results.append((obs, reward, done, last))
    if last:
      cell, held, age = [size // 2] * 2, False, 0
  return results


@pytest.mark.parametrize(
  'fields', [{}, {'permuted': True}, {'key_door': True, 'size': 3}]
)
def test_unroll_is_its_host_twin(fields):
  """E0 on 1,000 random action sequences of three episodes of ten steps."""
  world = worlds.DarkRoom(**{'size': 4, **fields})
  actor = actors.Uniform(space=world.actions)
  key_B = keys(1000)
  steps = jax.device_get(histories(world, actor, key_B, 3, 10))
  task_B = jax.vmap(lambda key: jax.random.split(key, 3)[0])(key_B)
  state = jax.device_get(jax.vmap(world.reset)(task_B))
  for b in range(1000):
    found = zip(
      steps.obs[b], steps.reward[b], steps.done[b], steps.last[b], strict=True
    )
    assert list(found) == host_room(
      world.size,
      state.goal_2[b].tolist(),
      steps.action[b],
      10,
      order=state.order_A[b],
      key=state.key_2[b].tolist(),
      key_door=world.key_door,
    )
  assert steps.valid.all()
  assert (np.diff(steps.episode, axis=1) == steps.last[:, :-1]).all()
  ended = ~steps.last
  np.testing.assert_array_equal(
    steps.next_obs[:, :-1][ended[:, :-1]], steps.obs[:, 1:][ended[:, :-1]]
  )


def test_optimal_actions_reach_the_goal():
  """E0: on the shortest way, also where actions are permuted."""
  world = worlds.DarkRoom(size=5, permuted=True)

  def one(key):
    state = world.reset(key)

    def move(state, _):
      state, reward, _ = world.step(state, world.optimal(state), key)
      return state, reward

    far = jnp.abs(state.goal_2 - 2).sum()
    return far, jax.lax.scan(move, state, None, length=6)[1].sum()

  far_B, reward_B = jax.vmap(one)(keys(200))
  np.testing.assert_array_equal(reward_B, 6 - jnp.maximum(far_B, 1) + 1)


def test_history_of_a_key_is_that_of_a_row():
  """E0: neither the number of rows nor their order changes a history."""
  world = worlds.Bandit(arms=3)
  actor = actors.Thompson(arms=3)
  key_B = keys(6)
  steps = histories(world, actor, key_B, 2, 4)
  turned = histories(world, actor, key_B[::-1], 2, 4)
  jax.tree.map(
    np.testing.assert_array_equal,
    steps,
    jax.tree.map(lambda x: x[::-1], turned),
  )
  one = unroll(world, actor, key_B[2], 2, 4)
  np.testing.assert_array_equal(one.action, steps.action[2])


def test_ucb_by_hand():
  """E1: at t = 10 and n = 4 the bonus is .53649; each arm comes once first."""
  memory = actors.Pulls(jnp.array([4.0, 6.0]), jnp.array([2.0, 3.0]))
  bonus = actors.UCB(arms=2).bonus(memory)
  np.testing.assert_allclose(bonus[0], 0.5364956, rtol=1e-5)
  world = worlds.Bandit(arms=4)
  steps = histories(world, actors.UCB(arms=4), keys(5), 1, 4)
  np.testing.assert_array_equal(steps.action, [[0, 1, 2, 3]] * 5)


def test_ucb_without_bonus_is_greedy_after_one_pull_each():
  """E0: the mean decides from pull K + 1 on."""
  world = worlds.Bandit(arms=3)
  steps = histories(world, actors.UCB(arms=3, alpha=0.0), keys(50), 1, 12)
  played = zip(np.array(steps.action), np.array(steps.reward), strict=True)
  for action_T, reward_T in played:
    for t in range(3, 12):
      mean = [reward_T[:t][action_T[:t] == k].mean() for k in range(3)]
      assert action_T[t] == np.argmax(mean)


def test_thompson_by_hand():
  """E1: n = 4, mean .7 gives mean .657480 and variance .0177165."""
  memory = actors.Pulls(jnp.array([4.0, 0.0]), jnp.array([2.8, 0.0]))
  mean_K, variance_K = actors.Thompson(arms=2).posterior(memory)
  np.testing.assert_allclose(mean_K, [0.657480, 0.5], rtol=1e-5)
  np.testing.assert_allclose(variance_K, [0.0177165, 1 / 12], rtol=1e-4)


def test_exp3_by_hand():
  """E1: K = 3, 2,000 rounds, rate 5; arm 1 earns half of the norm."""
  actor = actors.EXP3(arms=3, rate=5.0, rounds=2000.0, norm=6000.0)
  np.testing.assert_allclose(actor.eta, 0.067658, rtol=1e-5)
  step = Step(0, jnp.int32(1), jnp.float32(3000.0), 0, False, False)
  memory = actor.learn(actor.init(jax.random.key(0)), step)
  np.testing.assert_allclose(
    jax.nn.softmax(memory), [0.322944, 0.354112, 0.322944], rtol=1e-5
  )


def test_hedge_by_hand():
  """E1: regret .244919 on alternating losses with eta = .5."""
  loss_TK = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]])
  p_TK = jax.nn.softmax(-0.5 * (np.cumsum(loss_TK, axis=0) - loss_TK))
  regret = (loss_TK * p_TK).sum() - loss_TK.sum(axis=0).min()
  np.testing.assert_allclose(regret, 0.244919, rtol=1e-5)
  world = worlds.Experts(steps=4, sequences='alternating', noise=0.0)
  steps = histories(world, actors.Hedge(), keys(20000), 1, 4)
  assert steps.done[:, -1].all() and not steps.done[:, :-1].any()
  mean = float(-steps.reward.sum(axis=1).mean())
  assert abs(mean - 2 - regret) < 0.03  # ten deviations of the mean


def test_linucb_learns_theta():
  """With little noise its regret becomes small, far below that of chance."""
  world = worlds.LinearBandit(sigma=0.0)
  actor = actors.LinUCB(features_KE=world.features_KE, alpha=0.5)
  steps = histories(world, actor, keys(100), 1, 40)
  assert float(steps.regret[:, 20:].mean()) < 0.1
  uniform = actors.Uniform(space=world.actions)
  assert float(histories(world, uniform, keys(100), 1, 40).regret.mean()) > 0.5


def test_q_learning_finds_the_goal():
  """The last episodes earn more than the first; a random run does not learn."""
  world = worlds.DarkRoom(size=5)
  actor = actors.QLearner(observations=25, actions=5)
  steps = histories(world, actor, keys(30), 30, 10)
  returns = episode_returns(steps, 30).mean(axis=0)
  assert returns[-5:].mean() > returns[:5].mean() + 3
  noisy = histories(world, actor.replace(random=1.0), keys(30), 30, 10)
  flat = episode_returns(noisy, 30).mean(axis=0)
  assert abs(float(flat[-5:].mean() - flat[:5].mean())) < 0.5
  np.testing.assert_allclose(returns.sum(), steps.reward.sum() / 30, rtol=1e-5)


def test_way_points_reach_every_goal():
  """Through walls nothing moves; every goal of the U is reached."""
  world = worlds.PointMaze(start=None, sees_goal=True)
  steps = histories(world, actors.WayPoints(world=world), keys(100), 1, 60)
  assert (steps.reward.sum(axis=1) >= 1).all()
  place = (np.array(steps.obs[..., :2]) + 1) / 2 * 5
  cell = np.floor(place).astype(int)
  wall = np.array([[mark == '#' for mark in row] for row in world.maze])
  assert not wall[cell[..., 0], cell[..., 1]].any()
  assert (
    np.abs(np.array(steps.next_obs - steps.obs)).max() <= 0.5 * 2 / 5 + 1e-5
  )


def test_render_shows_the_point():
  world = worlds.PointMaze()
  state = world.reset(jax.random.key(0))
  image = world.render(state)
  assert image.shape == (16, 16) and float(image.max()) <= 1.0
  row, column = np.unravel_index(np.argmax(image), image.shape)
  at = np.array(state.place_2) / 5 * 16
  assert math.dist((row + 0.5, column + 0.5), at) < 1


@declared
class Logarithmic(worlds.Bandit):
  """Rewards are logarithms, which negative ones have not."""

  def step(self, state, action, key):
    state, reward, done = super().step(state, action, key)
    return state, jnp.log(reward), done


def test_a_number_that_is_not_finite_makes_the_rest_invalid():
  """E0: earlier steps count, later ones do not, in rows neither."""
  world = Logarithmic(arms=2)
  steps = histories(world, actors.Uniform(space=world.actions), keys(40), 1, 8)
  bad = ~np.isfinite(np.array(steps.reward))
  assert bad.any() and not bad.all()
  np.testing.assert_array_equal(steps.valid, np.cumsum(bad, axis=1) == 0)
  traj = rows.trajectories(world, steps)
  np.testing.assert_array_equal(traj.length_B, 1 + steps.valid.sum(axis=1))
  assert np.isfinite(traj.inputs_BTF).all() and np.isfinite(traj.reward_B).all()


def test_a_world_of_a_user(tmp_path, user_modules):
  """The file of the guide, outside the repository: 20 lines, and it plays."""
  page = ROOT / 'docs/guides/histories.md'
  block = re.compile(r'^```python\n(# my_world.py\n.*?)^```', re.M | re.S)
  (text,) = block.findall(page.read_text())
  path = tmp_path / 'my_world.py'
  path.write_text(text)
  world = user_modules.load(str(path)).HigherOrLower()
  lines = [line for line in text.splitlines() if line and line[0] != '#']
  assert len(lines) <= 20
  steps = histories(world, actors.Uniform(space=world.actions), keys(50), 3, 9)
  assert steps.done.any() and (steps.reward == steps.done).all()
  assert rows.trajectories(world, steps).response_BT.shape == (50, 28)
