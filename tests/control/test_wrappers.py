"""Worlds on other worlds."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import actors, adapters, online, worlds
from rl_jax.control.base import Box
from rl_jax.control.offline import Free, Learned, Offline
from rl_jax.control.unroll import histories
from rl_jax.control.wrappers import (
  Bounded,
  Guided,
  Hinted,
  Redrawn,
  SameTask,
  Wrapped,
  squeezed,
)


def keys(number):
  return jax.random.split(jax.random.key(0), number)


def test_a_wrapper_that_changes_nothing():
  """E0."""
  world = worlds.DarkRoom(size=3, key_door=True)
  actor = actors.Uniform(space=world.actions)
  plain = histories(world, actor, keys(5), 2, 8)
  wrapped = histories(Wrapped(world=world), actor, keys(5), 2, 8)
  jax.tree.map(np.testing.assert_array_equal, plain, wrapped)


def test_groups_share_a_task():
  """E0: rewards of equal actions are equal without noise."""
  world = worlds.Bandit(arms=3, sigma=0.0)
  same = SameTask(world=world, key=jax.random.key(7))
  steps = histories(same, actors.UCB(arms=3), keys(6), 1, 5)
  assert np.ptp(np.array(steps.reward), axis=0).max() == 0
  other = histories(world, actors.UCB(arms=3), keys(6), 1, 5)
  assert np.ptp(np.array(other.reward), axis=0).max() > 0


def test_redrawn_arms_cannot_be_remembered():
  """A player with memory has the regret of chance."""
  world = worlds.Bandit(arms=3, sigma=0.0)
  greedy = actors.UCB(arms=3, alpha=0.0)
  found = histories(Redrawn(world=world), greedy, keys(300), 1, 20)
  known = histories(world, greedy, keys(300), 1, 20)
  assert float(known.regret[:, 5:].mean()) < 1e-6
  assert abs(float(found.regret[:, 5:].mean()) - 0.25) < 0.02


def test_a_reward_tells_nothing_of_the_next_task():
  """Means after a win and after a loss are equal, to four deviations."""
  world = Redrawn(world=worlds.Bandit(arms=2, rewards='bernoulli'))

  def one(key):
    state = world.reset(jax.random.key(0))
    after, reward, _ = world.step(state, jnp.int32(0), key)
    return after, reward

  after, reward = map(np.array, jax.vmap(one)(keys(4000)))
  gap = after[reward == 1].mean(axis=0) - after[reward == 0].mean(axis=0)
  wins, losses = (reward == 1).sum(), (reward == 0).sum()
  assert np.abs(gap).max() < 4 * 0.29 * np.sqrt(1 / wins + 1 / losses)


def test_hints_are_the_two_terms():
  """E0: mean + bonus decides as UCB itself, and the arms are the same."""
  world = worlds.Bandit(arms=3, rewards='bernoulli')
  guide = actors.UCB(arms=3)
  hinted = Hinted(world=world, guide=guide)
  steps = histories(hinted, guide, keys(20), 1, 15)
  plain = histories(world, guide, keys(20), 1, 15)
  np.testing.assert_array_equal(steps.action, plain.action)
  np.testing.assert_array_equal(steps.reward, plain.reward)
  mean, bonus = jnp.split(steps.obs, 2, axis=-1)
  np.testing.assert_array_equal(
    jnp.argmax(mean + bonus, axis=-1)[:, 3:], steps.action[:, 3:]
  )
  np.testing.assert_array_equal(steps.obs[:, 0], [[0, 0, 0, 2, 2, 2]] * 20)


def guided(**fields):
  return Guided(
    world=worlds.DarkRoom(size=5, key_door=True), horizon=270, **fields
  )


def test_bonus_by_hand():
  """E1: alpha .2, n = 30 of 270; success at t = 60 pays .8."""
  world = guided()
  np.testing.assert_allclose(world.bonus(30), 0.177778, rtol=1e-5)
  state = world.reset(jax.random.key(0))
  inner = state.inner._replace(
    cell_2=jnp.array([0, 0]), goal_2=jnp.array([0, 1]), held=jnp.bool_(True)
  )
  state = state._replace(inner=inner, time=jnp.int32(59))
  state = state._replace(goals_N2=jnp.full((2, 2), 4))
  _, reward, done = world.step(state, jnp.int32(4), jax.random.key(1))
  assert done
  np.testing.assert_allclose(reward, 0.8, rtol=1e-6)


def test_sub_goals_are_met_in_order():
  """E0: the second one pays nothing while the first is current."""
  world = guided()
  state = world.reset(jax.random.key(0))
  goals = jnp.array([[2, 3], [2, 1]])
  far = jnp.array([4, 4])
  inner = state.inner._replace(goal_2=far, key_2=far)
  state = state._replace(goals_N2=goals, inner=inner)
  away, reward, _ = world.step(state, jnp.int32(3), jax.random.key(0))
  assert reward == 0 and away.index == 0  # at (2, 1)
  met, reward, _ = world.step(state, jnp.int32(4), jax.random.key(0))
  np.testing.assert_allclose(reward, world.bonus(1), rtol=1e-6)
  assert met.index == 1 and met.age == 0
  back, first, _ = world.step(met, jnp.int32(3), jax.random.key(0))
  last, second, _ = world.step(back, jnp.int32(3), jax.random.key(0))
  assert first == second == 0 and last.index == 1  # the last one pays nothing


def test_bonuses_are_at_most_alpha():
  """One of two sub-goals pays, once an episode; without a teacher nothing."""
  world = guided()
  uniform = actors.Uniform(space=world.actions)
  steps = histories(world, uniform, keys(50), 1, 60)
  some = (steps.episode == 0) & ~steps.done
  bonus = (steps.reward * some).sum(axis=1)
  assert bonus.max() > 0 and bonus.max() <= 0.2
  untaught = guided(teaches=False)
  steps = histories(untaught, uniform, keys(50), 1, 60)
  assert not steps.obs[..., -2:].any()
  np.testing.assert_array_equal(steps.reward > 0, steps.done)


def test_guided_rooms_need_a_key():
  with pytest.raises(ValueError, match='Guided.world'):
    Guided(world=worlds.DarkRoom())


def test_squeezed_by_hand():
  """E1: x = .5 in [-.3, .1] is 0, with gradient (u - l) / 2."""
  assert abs(float(squeezed(0.5, -0.3, 0.1))) < 1e-7
  slope = jax.grad(squeezed)(0.5, jnp.float32(-0.3), jnp.float32(0.1))
  np.testing.assert_allclose(slope, 0.2, rtol=1e-6)


def upwards(obs):
  """A program without freedom: up."""
  action = jnp.array([-1.0, 0.0])
  return action, action


def test_bounds_act_with_their_share():
  """E0: at 1 the program acts, at 0 the world is unchanged."""
  world = worlds.PointMaze(start=None)
  uniform = actors.Uniform(space=world.actions)
  bounded = Bounded(world=world, program=upwards)
  steps = histories(bounded, uniform, keys(20), 1, 10)
  assert (steps.next_obs[..., 0] <= steps.obs[..., 0] + 1e-6).all()
  np.testing.assert_array_equal(
    steps.obs[..., 2:], np.broadcast_to([-1.0, 0, -1, 0], (20, 10, 4))
  )
  free = histories(bounded.replace(share=0.0), uniform, keys(20), 1, 10)
  np.testing.assert_array_equal(
    free.obs[..., 2:], np.broadcast_to([-1.0, -1, 1, 1], (20, 10, 4))
  )
  assert (free.next_obs[..., 0] > free.obs[..., 0]).any()


def test_td3_learns_online():
  """A goal beside the start is found, and reached in most episodes."""
  world = worlds.PointMaze(maze=('...',), start=(0, 0), goals=((0, 1),))
  learner = Offline(constraint=Free(), width=16, batch=32, gamma=0.9, rate=3e-3)

  def at(passed):
    del passed
    return world

  run = jax.jit(
    lambda key: online.train(at, learner, key, episodes=30, horizon=6)
  )
  state, returns = run(jax.random.key(0))
  actor = Learned(learner=learner, params=state.params)
  steps = histories(world, actor, keys(20), 1, 6)
  assert (steps.reward.sum(axis=1) > 0).mean() > 0.8
  assert returns.shape == (30,)


@pytest.mark.parametrize('name', ['gymnax', 'xminigrid'])
def test_packages_that_are_missing_are_named(name, monkeypatch):
  """With the extra that has them."""
  monkeypatch.setitem(sys.modules, name, None)
  make = getattr(adapters, f'from_{name}')
  with pytest.raises(ImportError, match=r'rl_jax\[control\].*' + name):
    make('CartPole-v1')


def test_worlds_of_gymnax_play():
  """Episodes of a cart end, and the next one begins by a reset."""
  pytest.importorskip('gymnax', reason="needs the extra 'control'")
  world = adapters.from_gymnax('CartPole-v1')
  uniform = actors.Uniform(space=world.actions)
  steps = histories(world, uniform, keys(3), 1, 60)
  assert steps.done.any() and (steps.reward == 1).all()


def test_worlds_of_gymnax_with_real_actions_play():
  """Actions within [-1, 1] drive a car, and observations are finite."""
  pytest.importorskip('gymnax', reason="needs the extra 'control'")
  world = adapters.from_gymnax('MountainCarContinuous-v0')
  assert isinstance(world.actions, Box)
  uniform = actors.Uniform(space=world.actions)
  steps = histories(world, uniform, keys(2), 1, 20)
  assert steps.valid.all() and jnp.ptp(steps.obs[..., 0]) > 0


def test_worlds_of_xminigrid_play():
  """A walker in an empty room sees more than one view."""
  pytest.importorskip('xminigrid', reason="needs the extra 'control'")
  world = adapters.from_xminigrid('MiniGrid-Empty-5x5')
  uniform = actors.Uniform(space=world.actions)
  steps = histories(world, uniform, keys(4), 2, 30)
  assert steps.valid.all()
  assert (
    len(np.unique(np.array(steps.obs).reshape(-1, steps.obs.shape[-1]), axis=0))
    > 1
  )
