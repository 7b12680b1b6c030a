"""CAMEL (C189): TD3 whose actions a program bounds at first."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import maze, policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, online
from rl_jax.control.offline import Free, Learned, Offline
from rl_jax.control.wrappers import Bounded
from rl_jax.types import Array

SLACK = 0.3  # of an interval around the proposed action
MASKED = 0.6  # share of the training after which no bounds act


def around(action: Array) -> tuple[Array, Array]:
  """An interval within [-1, 1]."""
  return jnp.clip(action - SLACK, -1, 1), jnp.clip(action + SLACK, -1, 1)


def good(obs: Array) -> tuple[Array, Array]:
  """Through the middles of the cells of a shortest path."""
  guide = actors.WayPoints(world=maze.world(), goal=maze.GOAL)
  return around(guide.act((), obs, jax.random.key(0))[0])


def straight(obs: Array) -> tuple[Array, Array]:
  """Straight to the goal, whatever walls there are: a bad program here."""
  goal_2 = maze.world().scaled(jnp.asarray(maze.GOAL) + 0.5)
  gap_2 = goal_2 - obs[:2]
  return around(gap_2 / (jnp.abs(gap_2).max() + 1e-6))


def _shared(bounded: Bounded, share: Any) -> Bounded:
  """The world with another share of bounded actions."""
  return dataclasses.replace(bounded, share=share)


def measure(key_S: Array, scale: float) -> Results:
  """Three programs, as many episodes."""
  episodes = max(2, round(80 * scale))
  learner = Offline(constraint=Free(), gamma=maze.GAMMA, lag=maze.LAG)
  arms = {'good program': good, 'bad program': straight, 'no program': None}

  def one(key: Array) -> dict[str, dict[str, Array]]:
    found = {}
    for name, program in arms.items():
      free = Bounded(world=maze.world(), program=program or straight, share=0.0)

      def world_at(passed, bounded=free, program=program):
        share = jnp.maximum(0.0, 1 - passed / MASKED)
        return bounded if program is None else _shared(bounded, share)

      state, return_E = online.train(
        world_at, learner, key, episodes=episodes, horizon=maze.HORIZON
      )
      actor = Learned(learner=learner, params=state.params)
      test = jax.random.split(jax.random.fold_in(key, 2), maze.TEST)
      steps = policies.play(free, actor, test, maze.HORIZON)
      first_BT = (steps.episode == 0) * steps.reward
      found[name] = {
        maze.SUCCESS: (first_BT.sum(axis=1) > 0).mean(),
        'return of a training episode': return_E.mean(),
      }
    return {
      metric: {name: arm[metric] for name, arm in found.items()}
      for metric in found['no program']
    }

  return jax.tree.map(np.array, policies.over_seeds(one, key_S))


ROW = Row(
  'CAMEL (C189), U maze',
  (
    Claim(
      'without its bounds in the end, a good program has taught more than none',
      maze.SUCCESS,
      'no program',
      'good program',
    ),
    Claim(
      'a bad program does not hurt: at least 0.9 times as good as none',
      maze.SUCCESS,
      'no program',
      'bad program',
      1 / 0.9,
    ),
  ),
  measure,
)
