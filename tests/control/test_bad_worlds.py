"""Mistakes in a user's world or actor are named before anything compiles."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import actors, rows, worlds
from rl_jax.control.base import Actor, Box, Discrete, World, declared
from rl_jax.control.unroll import histories, unroll


@declared
class Line(World):
  """A place on a line; the reward is the place."""

  observations = Box(1)
  actions = Discrete(2)

  def reset(self, key):
    return {'place': jax.random.uniform(key, (1,))}

  def observe(self, state):
    return state['place']

  def step(self, state, action, key):
    state = {'place': state['place'] + 1 - 2 * action}
    return state, state['place'][0], jnp.bool_(False)


class Grows(Line):
  def step(self, state, action, key):
    state, reward, done = super().step(state, action, key)
    return {'place': jnp.append(state['place'], 0.0)}, reward, done


class Counts(Line):
  def step(self, state, action, key):
    number = int(state['place'][0] * 3)
    return {'place': jnp.zeros(number)}, jnp.float32(0.0), jnp.bool_(False)


class Shaped(Line):
  def reset(self, key):
    return {'place': jnp.ones(jax.random.randint(key, (), 1, 4))}


class Branches(Line):
  def step(self, state, action, key):
    if state['place'][0] > 0:
      return super().step(state, action, key)
    return state, jnp.float32(0.0), jnp.bool_(True)


class Renames(Line):
  def begin(self, state, key):
    return {'position': state['place']}


class Nan(Line):
  def step(self, state, action, key):
    return state, jnp.log(jnp.float32(-1.0)), jnp.bool_(False)


class Infinite(Line):
  def reset(self, key):
    return {'place': jnp.full(1, jnp.inf)}


class Impure(Line):
  def step(self, state, action, key):
    state = {'place': state['place'] + np.random.normal()}
    return state, state['place'][0], jnp.bool_(False)


CALLS = []


class Remembers(Line):
  def observe(self, state):
    CALLS.append(0)
    return state['place'] + len(CALLS)


class TwoResults(Line):
  def step(self, state, action, key):
    return state, jnp.float32(0.0)


class VectorReward(Line):
  def step(self, state, action, key):
    return state, state['place'], jnp.bool_(False)


class FloatDone(Line):
  def step(self, state, action, key):
    return state, state['place'][0], jnp.float32(0.0)


class Wide(Line):
  observations = Discrete(3)


class Outside(Line):
  observations = Discrete(3)

  def observe(self, state):
    return jnp.int32(7)


class Widens(Line):
  """Its state gets a further entry."""

  def step(self, state, action, key):
    state = {'place': jnp.zeros(1), 'next': jnp.zeros(1)}
    return state, jnp.float32(0.0), jnp.bool_(False)


class Rounds(Line):
  def step(self, state, action, key):
    state = {'place': state['place'].astype(jnp.int32)}
    return state, jnp.float32(0.0), jnp.bool_(False)


class Selects(Line):
  def observe(self, state):
    return state['place'][state['place'] > 0]


class Loops(Line):
  def step(self, state, action, key):
    for _ in range(jnp.int32(state['place'][0])):
      state = state
    return state, jnp.float32(0.0), jnp.bool_(False)


class NanLater(Line):
  """The first step is finite, and the second one is not."""

  def step(self, state, action, key):
    state = {'place': jnp.where(state['place'] < 2, 5.0, jnp.nan)}
    return state, jnp.float32(0.0), jnp.bool_(False)


class NanRegret(Line):
  def regret(self, state, action):
    return jnp.float32(jnp.nan)


class VectorRegret(Line):
  def regret(self, state, action):
    return state['place']


class VectorDone(Line):
  def step(self, state, action, key):
    return state, jnp.float32(0.0), jnp.zeros(1, bool)


class RandomReset(Line):
  def reset(self, key):
    return {'place': jnp.full(1, np.random.normal())}


class RandomSize(Line):
  def reset(self, key):
    return {'place': jnp.zeros(np.random.randint(1, 10**6))}


class NoSpace(Line):
  observations = 1


class ClassSpace(Line):
  actions = Discrete


class WrongBest(Line):
  def optimal(self, state):
    return state['place']


@declared
class Counter(Actor):
  """Alternates, by its memory."""

  def init(self, key):
    return jnp.int32(0)

  def act(self, memory, obs, key):
    return memory % 2, memory

  def learn(self, memory, step):
    return memory + 1


class Forgets(Counter):
  def learn(self, memory, step):
    memory + 1


class ForgetsToAct(Counter):
  def act(self, memory, obs, key):
    return memory % 2


class Lists(Counter):
  def init(self, key):
    return jnp.zeros(1)

  def act(self, memory, obs, key):
    return jnp.int32(0), memory

  def learn(self, memory, step):
    return jnp.append(memory, step.reward)


class RealAction(Counter):
  def act(self, memory, obs, key):
    return jnp.float32(0.5), memory


class Host(Counter):
  def act(self, memory, obs, key):
    return jnp.int32(int(memory) % 2), memory


class Random(Counter):
  def act(self, memory, obs, key):
    return jnp.int32(np.random.randint(2**30)), memory


def play(world, actor, episodes=2, horizon=3):
  return histories(
    world, actor, jax.random.split(jax.random.key(0), 4), episodes, horizon
  )


def test_the_good_ones_play():
  """E0: the actions of the counter; without an end an episode is cut."""
  steps = play(Line(), Counter())
  np.testing.assert_array_equal(steps.action, [[0, 1, 0, 1, 0, 1]] * 4)
  np.testing.assert_array_equal(steps.last, [[False, False, True] * 2] * 4)
  assert not steps.done.any()


@pytest.mark.parametrize(
  'world, words',
  [
    (Grows, r"Grows.step: state\['place'\] became float32\[2\]"),
    (Counts, 'Counts.step reads values of the state where it needs shapes'),
    (Shaped, 'Shaped.reset reads values of the state'),
    (Branches, 'Branches.step reads values of the state'),
    (Renames, 'Renames.begin: the state became'),
    (Nan, r'Nan.step: result\[1\] = .* is not finite'),
    (Infinite, r"Infinite.reset: result\['place'\] = .* is not finite"),
    (Impure, 'Impure.step is not pure'),
    (Remembers, 'Remembers.observe is not pure'),
    (TwoResults, r'TwoResults.step: expected \(state, reward, done\)'),
    (VectorReward, r'VectorReward.step: reward has shape \(1,\)'),
    (FloatDone, 'FloatDone.step: done is float32.* expected a scalar bool'),
    (Wide, r'Wide.observe gave float32\[1\], which is not of Discrete'),
    (Outside, 'Outside.observe gave 7, which is not of'),
    (Widens, 'Widens.step: the state became'),
    (Rounds, r"Rounds.step: state\['place'\] became int32\[1\]"),
    (Selects, 'Selects.observe reads values of the state'),
    (Loops, 'Loops.step reads values of the state'),
    (NanLater, r"NanLater.step: result\[0\]\['place'\] = .* is not finite"),
    (NanRegret, 'NanRegret.regret: result = .* is not finite'),
    (VectorRegret, r'VectorRegret.regret gave an array of shape \(1,\)'),
    (VectorDone, r'VectorDone.step: done has shape \(1,\)'),
    (RandomReset, 'RandomReset.reset is not pure'),
    (RandomSize, 'RandomSize.reset is not pure'),
    (NoSpace, r'NoSpace.observations = 1: expected Discrete\(n\) or Box'),
    (ClassSpace, 'ClassSpace.actions = .*: expected Discrete'),
    (WrongBest, r'WrongBest.optimal gave float32\[1\], which is not of'),
  ],
)
def test_worlds_are_refused(world, words):
  with pytest.raises(ValueError, match=words):
    play(declared(world)(), Counter())


@pytest.mark.parametrize(
  'actor, words',
  [
    (Forgets, 'Forgets.learn: the memory became .*None'),
    (ForgetsToAct, r'ForgetsToAct.act: expected \(action, memory\)'),
    (Lists, r'Lists.learn: memory became float32\[2\], and was float32\[1\]'),
    (RealAction, r'RealAction.act gave float32\[\], which is not of Discrete'),
    (Host, 'Host.act reads values of the state'),
    (Random, 'Random.act is not pure'),
  ],
)
def test_actors_are_refused(actor, words):
  with pytest.raises(ValueError, match=words):
    play(Line(), declared(actor)())


class Swaps(Counter):
  """The memory of a task is lost when it acts."""

  def act(self, memory, obs, key):
    return memory % 2, ()


class Halves(Counter):
  def learn(self, memory, step):
    return memory / 2


@pytest.mark.parametrize(
  'world, actor, words',
  [
    (Grows, Counter, r"Grows.step: state\['place'\] became float32\[2\]"),
    (Renames, Counter, 'Renames.begin: the state became'),
    (TwoResults, Counter, r'TwoResults.step: expected \(state, reward, done'),
    (VectorReward, Counter, r'VectorReward.step: reward has shape \(1,\)'),
    (VectorDone, Counter, r'VectorDone.step: done has shape \(1,\)'),
    (Line, Forgets, 'Forgets.learn: the memory became .*None'),
    (Line, ForgetsToAct, r'ForgetsToAct.act: expected \(action, memory\)'),
    (Line, Lists, r'Lists.learn: memory became float32\[2\]'),
    (Line, Swaps, r'Swaps.act: the memory became PyTreeDef\(\(\)\)'),
    (Line, Halves, r'Halves.learn: memory became float32\[\], and was int32'),
    (Line, RealAction, r'RealAction.act gave float32\[\], which is not of'),
  ],
)
def test_traced_histories_name_what_changes_its_form(world, actor, words):
  """A program of the user traces `unroll` itself."""
  made, played = declared(actor)(), declared(world)()
  with pytest.raises(ValueError, match=words):
    jax.jit(lambda key: unroll(played, made, key, 2, 3))(jax.random.key(0))


def test_what_a_class_lacks_is_named():
  @declared
  class Empty(World):
    pass

  @declared
  class Still(Actor):
    pass

  with pytest.raises(NotImplementedError, match='Empty.observations is missi'):
    play(Empty(), Counter())
  with pytest.raises(NotImplementedError, match='Still.act is missing'):
    play(Line(), Still())


def test_classes_that_are_not_declared_are_refused():
  class Plain(Line):
    pass

  with pytest.raises(ValueError, match='Plain is not a pytree'):
    play(Plain(), Counter())


@pytest.mark.parametrize('field', ['episodes', 'horizon'])
@pytest.mark.parametrize('value', [0, -1, 2.0, None, True])
def test_lengths_are_refused(field, value):
  """An episode without an end is cut at the horizon, which has to be given."""
  with pytest.raises(ValueError, match=f'unroll.{field} = '):
    play(Line(), Counter(), **{field: value})


@pytest.mark.parametrize(
  'make, words',
  [
    (lambda: worlds.Bandit(arms=1), 'Bandit.arms = 1'),
    (lambda: worlds.Bandit(sigma=float('nan')), 'Bandit.sigma = nan'),
    (lambda: worlds.Bandit(rewards='beta'), 'Bandit.rewards'),
    (lambda: worlds.PointMaze(maze=('..', '.')), 'PointMaze.maze'),
    (lambda: worlds.PointMaze(start=(1, 1)), 'PointMaze.start'),
    (lambda: worlds.PointMaze(goals=((9, 9),)), 'PointMaze.goals'),
    (lambda: actors.WayPoints(world=worlds.PointMaze()), 'WayPoints.goal'),
    (lambda: Discrete(0), 'Discrete.n = 0'),
  ],
)
def test_fields_are_named(make, words):
  with pytest.raises(ValueError, match=words):
    make()


def test_rows_of_unequal_length_are_masked_or_refused():
  """E0: `joined` marks what is beyond the end; unequal fields are an error."""
  world = worlds.Bandit()
  actor = actors.Uniform(space=world.actions)
  key_B = jax.random.split(jax.random.key(0), 2)
  parts = [histories(world, actor, key_B, 1, horizon) for horizon in (3, 5)]
  steps = rows.joined(parts)
  np.testing.assert_array_equal(steps.valid.sum(axis=1), [3, 3, 5, 5])
  traj = rows.trajectories(world, steps)
  np.testing.assert_array_equal(traj.length_B, [4, 4, 6, 6])
  np.testing.assert_array_equal(traj.mask_BT.sum(axis=1), [3, 3, 5, 5])
  assert (traj.kind_BT[:2, 4:] == 0).all() and not traj.inputs_BTF[:2, 4:].any()
  wrong = steps.replace(optimal=steps.optimal[:, :4])
  with pytest.raises(ValueError, match='Steps.optimal has shape'):
    rows.trajectories(world, wrong)
  with pytest.raises(ValueError, match='at least one history'):
    rows.joined([])
  with pytest.raises(ValueError, match='group_size = 3 does not divide 4'):
    rows.trajectories(world, steps, group_size=3)
  with pytest.raises(ValueError, match=r'weight_B has shape \(2,\)'):
    rows.trajectories(world, steps, weight_B=jnp.ones(2))
  with pytest.raises(ValueError, match='Steps.next_obs of a step is None'):
    rows.joined([parts[0], parts[1].replace(next_obs=None)])
  wide = parts[1].replace(obs=jnp.zeros((2, 5, 3)))
  with pytest.raises(ValueError, match=r'Steps.obs of a step is float32\[3\]'):
    rows.joined([parts[0], wide])
  single = jax.tree.map(lambda x: x[0], parts[0])
  with pytest.raises(ValueError, match=r'Steps.reward has shape \(3,\)'):
    rows.joined([parts[1], single])


def test_rows_of_real_actions_are_refused():
  world = worlds.PointMaze()
  steps = histories(
    world,
    actors.Uniform(space=world.actions),
    jax.random.split(jax.random.key(0), 2),
    1,
    2,
  )
  with pytest.raises(ValueError, match='PointMaze.actions'):
    rows.trajectories(world, steps)


def test_worlds_are_values():
  """Frozen, and a pytree whose leaves are the floats."""
  world = worlds.Bandit(sigma=0.5)
  with pytest.raises(dataclasses.FrozenInstanceError):
    world.sigma = 0.1
  assert jax.tree.leaves(world) == [0.5]
