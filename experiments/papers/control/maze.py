"""Offline learners on a U-shaped maze: PRDC, A2PR and FamO2O by their pieces.

Data are of our own way-point controller and of random actions; D4RL is not
here, so only mechanisms are shown, not its numbers.
"""

from collections.abc import Mapping
import dataclasses

import jax
import jax.numpy as jnp

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, offline, online, worlds
from rl_jax.control.base import Actor
from rl_jax.control.offline import (
  Advantaged,
  DataSet,
  Expectile,
  Family,
  Free,
  Learned,
  Nearest,
  Offline,
  State,
  Weighted,
)
from rl_jax.control.unroll import unroll
from rl_jax.types import Array

HORIZON, TEST = 40, 64
GOAL = (2, 4)
EPISODES = 120  # of data
SUCCESS = 'reaches the goal within 40 steps'
FAMILY = 'FamO2O'
ONLINE = f'{SUCCESS}, after 40 episodes online'
TARGETS = 'mean target of Q at the end'
TD3_BC, GAMMA = 'TD3+BC', 0.97
# Of lagged copies: with .005, as published, 1,500 updates carry no reward over
# the twenty steps from the far end of the maze.
LAG = 0.05


def world() -> worlds.PointMaze:
  """The maze; episodes begin anywhere, as those of D4RL's data."""
  return worlds.PointMaze(goals=(GOAL,), start=None)


def data_of(random: float, key: Array) -> DataSet:
  """Episodes of the controller with noise .5, and a share of random ones."""
  anywhere = world()
  expert = actors.WayPoints(world=anywhere, goal=GOAL, noise=0.5)
  uniform = actors.Uniform(space=anywhere.actions)
  few = round(random * EPISODES)

  def of(actor: Actor, key: Array, number: int) -> DataSet:
    key_B = jax.random.split(key, number)
    return offline.transitions(
      jax.vmap(lambda key: unroll(anywhere, actor, key, 1, HORIZON))(key_B)
    )

  parts = [of(expert, key, EPISODES - few)] if few < EPISODES else []
  parts += [of(uniform, jax.random.fold_in(key, 1), few)] if few else []
  return jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


def success(actor: Actor, key: Array) -> Array:
  """The share of test episodes that reach the goal in time."""
  key_B = jax.random.split(key, TEST)
  steps = policies.play(world(), actor, key_B, HORIZON)
  first_BT = (steps.episode == 0) * steps.reward
  return (first_BT.sum(axis=1) > 0).mean()


def compared(
  learners: Mapping[str, Offline], random: float, key_S: Array, updates: int
) -> Results:
  """Success of every learner on the same data, of every seed, and mean Q."""

  mixed = f'{random:.0%} random data'

  def one(key: Array) -> dict[str, dict[str, Array]]:
    data = data_of(random, key)
    found = {
      'controller': success(actors.WayPoints(world=world(), goal=GOAL), key)
    }
    targets: dict[str, Array] = {}
    for name, learner in learners.items():
      state, metrics = learner.fit(data, key, updates)
      actor = Learned(learner=learner, params=state.params)
      found[name] = success(actor, jax.random.fold_in(key, 2))
      targets[name] = metrics['q'][-100:].mean()
    return {f'{SUCCESS}, {mixed}': found, f'{TARGETS}, {mixed}': targets}

  return policies.over_seeds(one, key_S)


def td3_bc() -> Offline:
  """The learner that PRDC and A2PR change, with normalised states."""
  return Offline(lag=LAG, gamma=GAMMA, normalised=True)


def nearest(key_S: Array, scale: float) -> Results:
  """PRDC against TD3+BC on mixed data, with two values of beta."""
  updates = max(1, round(1500 * scale))
  learners = {TD3_BC: td3_bc()} | {
    f'PRDC, beta {beta:g}': dataclasses.replace(
      td3_bc(), constraint=Nearest(beta=beta)
    )
    for beta in (2.0, 1000.0)
  }
  return compared(learners, 0.8, key_S, updates)


def advantaged(key_S: Array, scale: float) -> Results:
  """A2PR against TD3+BC by the share of random data.

  A tenth of alpha makes both constraints ten times as strong.
  """
  updates = max(1, round(1500 * scale))
  base = td3_bc()
  a2pr = dataclasses.replace(base, constraint=Advantaged(mask=1.0))
  learners = {
    'TD3': dataclasses.replace(base, constraint=Free()),
    TD3_BC: base,
    f'{TD3_BC}, alpha 0.25': dataclasses.replace(base, alpha=0.25),
    'A2PR': a2pr,
    'A2PR, alpha 0.25': dataclasses.replace(a2pr, alpha=0.25),
  }
  parts = [compared(learners, share, key_S, updates) for share in (0.0, 0.8)]
  return {**parts[0], **parts[1]}


def by_region(key: Array) -> DataSet:
  """Rows of the controller in the left part, random actions in the right."""
  good, bad = data_of(0.0, key), data_of(1.0, key)
  left = good.obs[:, 1] < 0.2
  count = min(good.size, bad.size)

  def chosen(a: Array, b: Array) -> Array:
    on = left[:count].reshape(-1, *(1,) * (a.ndim - 1))
    return jnp.where(on, a[:count], b[:count])

  return jax.tree.map(chosen, good, bad)


def continued(
  learner: Offline, start: tuple[State, DataSet], key: Array, episodes: int
) -> Actor:
  """The learner after further episodes, with an update for every step."""
  state, _ = online.train(
    lambda passed: world(),
    learner,
    key,
    episodes=episodes,
    horizon=HORIZON,
    offline_start=start,
  )
  return Learned(learner=learner, params=state.params)


def _family(key: Array, updates: int):
  """(data, IQL and FamO2O with their states) after offline updates."""
  iql = Offline(lag=LAG, gamma=GAMMA, critic=Expectile(), constraint=Weighted())
  learner = dataclasses.replace(iql, balance=Family())
  data = by_region(key)
  state, _ = learner.fit(data, key, updates)
  plain, _ = iql.fit(data, key, updates)
  return data, (iql, plain), (learner, state)


def family(key_S: Array, scale: float) -> Results:
  """FamO2O: the chosen coefficient beside the local quality of data."""
  updates = max(1, round(1500 * scale))

  def one(key: Array) -> dict[str, dict[str, Array]]:
    data, (iql, plain), (learner, state) = _family(key, updates)
    test = jax.random.fold_in(key, 2)
    b_N = learner.chosen_b(state.params, data.obs)
    left_N = data.obs[:, 1] < 0.2

    def mean(on_N: Array) -> Array:
      return (b_N * on_N).sum() / on_N.sum()

    return {
      'b(s) within [8, 14]': {
        'good data': mean(left_N),
        'random data': mean(~left_N),
      },
      SUCCESS: {
        'IQL': success(Learned(learner=iql, params=plain.params), test),
        'FamO2O, offline': success(
          Learned(learner=learner, params=state.params), test
        ),
      },
    }

  return policies.over_seeds(one, key_S)


def family_online(key_S: Array, scale: float) -> Results:
  """Both continue online, where the balance model draws the coefficients."""
  updates, episodes = max(1, round(1500 * scale)), max(1, round(40 * scale))

  def one(key: Array) -> dict[str, dict[str, Array]]:
    data, (iql, plain), (learner, state) = _family(key, updates)
    chosen = dataclasses.replace(learner, balance=Family(drawn='balance'))
    draw, test = (jax.random.fold_in(key, n) for n in (3, 2))
    players = {
      'IQL': continued(iql, (plain, data), draw, episodes),
      FAMILY: continued(chosen, (state, data), draw, episodes),
    }
    return {ONLINE: {name: success(x, test) for name, x in players.items()}}

  return policies.over_seeds(one, key_S)


PRDC = Row(
  'PRDC (C171), U maze',
  (
    Claim(
      'PRDC (beta 2) reaches the goal more often than TD3+BC',
      f'{SUCCESS}, 80% random data',
      TD3_BC,
      'PRDC, beta 2',
    ),
  ),
  nearest,
)
A2PR = Row(
  'A2PR (C169), U maze',
  (
    Claim(
      'with 80% random data A2PR reaches the goal more often than TD3+BC',
      f'{SUCCESS}, 80% random data',
      TD3_BC,
      'A2PR',
    ),
  ),
  advantaged,
)
FAMO2O = Row(
  'FamO2O (C173), U maze, without the online phase',
  (
    Claim(
      'the chosen b is larger where data are good',
      'b(s) within [8, 14]',
      'random data',
      'good data',
    ),
    Claim(
      'offline it reaches the goal at least 0.9 times as often as IQL',
      SUCCESS,
      'IQL',
      'FamO2O, offline',
      1 / 0.9,
    ),
  ),
  family,
)
FAMO2O_ONLINE = Row(
  'FamO2O (C173), U maze, with the online phase',
  (
    Claim(
      'after 40 episodes online it reaches the goal more often than IQL',
      ONLINE,
      'IQL',
      FAMILY,
    ),
  ),
  family_online,
)
