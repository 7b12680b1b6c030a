"""Worlds on other worlds."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control import actors, worlds
from rl_jax.control.unroll import histories
from rl_jax.control.wrappers import Hinted, Redrawn, SameTask, Wrapped


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
  """Means after a win and after a loss are equal, to three deviations."""
  world = Redrawn(world=worlds.Bandit(arms=2, rewards='bernoulli'))

  def one(key):
    state = world.reset(jax.random.key(0))
    after, reward, _ = world.step(state, jnp.int32(0), key)
    return after, reward

  after, reward = map(np.array, jax.vmap(one)(keys(4000)))
  gap = after[reward == 1].mean(axis=0) - after[reward == 0].mean(axis=0)
  assert np.abs(gap).max() < 3 * 0.29 * np.sqrt(4 / 4000)


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
