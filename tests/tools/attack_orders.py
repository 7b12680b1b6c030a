"""Answers in many orders; tokens, log-probs and checkpoints must not differ.

  python tests/tools/attack_orders.py
  python tests/tools/attack_orders.py --orders=10 --staleness=0
  python tests/tools/attack_orders.py --game

A run of four iterations with episodes is played once for each order:
delays of a clock that only looks at answers move are drawn from five laws, 1, 4
or 64 calls run at once, and environments are functions or coroutines. After
each iteration all arrays and the JSON of a checkpoint are compared bit for bit
(tier E0) with those of the first order, and so are the rows of the batch. One
trainer plays all orders: it goes back to its checkpoint of iteration 0 before
each. With --game the policy plays a game of two players against itself. Prints
a JSON line; exit status 1 if an order differs.
"""

import argparse
from collections.abc import Callable
import dataclasses
import hashlib
import importlib.util
import itertools
import json
import os
import pathlib
import random
import sys
import tempfile
from typing import Any

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import jax
import numpy as np

from configs.methods import grpo
from configs.worlds import keydoor
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.turns import TurnConfig
from rl_jax.runs import loop, saving
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import Reply
from rl_jax.tasks.environments.base import AsyncEnvironment
from rl_jax.verification.sessions import SessionPool
from rl_jax.worlds import KeyDoor

LAWS: dict[str, Callable[[random.Random], float]] = {
  'constant': lambda r: 1.0,
  'uniform': lambda r: r.uniform(0.0, 2.0),
  'exponential': lambda r: r.expovariate(1.0),
  'lognormal': lambda r: r.lognormvariate(-0.5, 1.0),
  'heavy': lambda r: r.paretovariate(1.2) / 6,
}
AT_ONCE = (1, 4, 64)
LOOK = 0.3  # means of a call, by which a look without waiting moves the clock


def _beside(name: str) -> Any:
  """A module beside the tests, which is on no import path."""
  path = pathlib.Path(__file__).parents[1] / f'{name}.py'
  spec = importlib.util.spec_from_file_location(name, path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  spec.loader.exec_module(module)
  return module


class Coroutine(AsyncEnvironment):
  """An episode of a task of functions."""

  def __init__(self, episode: Any):
    self._episode = episode

  async def reset(self, seed: int) -> Reply:
    """The reply of the function."""
    return self._episode.reset(seed)

  async def step(self, action: str) -> Reply:
    """The reply of the function."""
    return self._episode.step(action)


class Coroutines(KeyDoor):
  """KeyDoor whose episodes are coroutines."""

  traits = TaskTraits(global_random=False, workers='asyncio')

  def make(self, example: Example) -> Any:
    """One episode."""
    return Coroutine(super().make(example))


def tasks(game: bool) -> tuple[Any, Any]:
  """(a task, the same one whose episodes are coroutines)."""
  if not game:
    return KeyDoor, Coroutines
  rally = _beside('misbehaving_environments').RallyTask

  class CoroutineRally(rally):
    """A game whose episodes are coroutines."""

    traits = dataclasses.replace(
      rally.traits, global_random=False, workers='asyncio'
    )

    def make(self, example: Example) -> Any:
      """One game."""
      return Coroutine(super().make(example))

  return rally, CoroutineRally


def config(staleness: int, game: bool = False) -> Any:
  """A smaller model and KeyDoor, or a game: 8 or 16 rows of at most 4 turns."""
  found = keydoor.get_config(grpo.get_method())
  small = dataclasses.replace(
    found.model.config, num_layers=1, width=16, mlp_size=16
  )
  return dataclasses.replace(
    found,
    iterations=100,
    task=tasks(game)[0]() if game else found.task,
    model=dataclasses.replace(found.model, config=small),
    rollout=dataclasses.replace(
      found.rollout,
      num_prompts=4 if game else 2,
      group_size=4,
      max_response_tokens=22,
      turns=TurnConfig(
        max_turns=4, max_turn_tokens=2, max_observation_tokens=4
      ),
      staleness=staleness,
    ),
    update=dataclasses.replace(found.update, minibatch_prompts=None),
    evaluation=dataclasses.replace(found.evaluation, every=0),
    checkpoint=dataclasses.replace(found.checkpoint, every=1000),
    guards=dataclasses.replace(found.guards, max_logp_gap=None),
  )


class Orders:
  """One trainer, and what its iterations leave in each order."""

  def __init__(self, staleness: int, workdir: str, game: bool = False):
    self.trainer = loop.Trainer(config(staleness, game), workdir)
    self._delayed = _beside('delayed_calls').DelayedCalls
    self._tasks = tasks(game)
    self._batches: list[Any] = []
    self.made: list[tuple[int, int, int]] = []  # calls in the last order
    collector = self.trainer.parts.collector
    collect = collector.collect

    def noted(draw):
      found = collect(draw)
      self._batches.append(found[0])
      return found

    collector.collect = noted

  def played(
    self, order: tuple[str, int, bool], seed: int, iterations: int
  ) -> list[dict[str, str]]:
    """Digests of batch and checkpoint after each iteration.

    order: law, calls at once, whether episodes are coroutines.
    """
    law, most, coroutines = order
    delay, clock = LAWS[law], self._delayed
    task = self._tasks[coroutines]
    weights = self.trainer.config.task.reward_weights
    pool = SessionPool(task(reward_weights=weights), 0)

    class Ticking(clock):
      """A clock that each look at it moves."""

      def poll(self, timeout):
        return super().poll(LOOK if timeout == 0.0 else timeout)

    def make(request):
      (answer,) = pool.ask([request.payload])
      assert answer.error is None, answer
      return 'ok', answer

    journal = NumberedCalls(pool)
    runner = self.trainer.parts.runner
    journal.heard = runner.activity.answered
    calls = Ticking(make, seed=seed, delay=delay, most=most)
    journal._calls._calls = calls
    runner._journal = journal
    runner._games.clear()
    runner._flying.clear()
    self.trainer._restore()
    found = []
    for _ in range(iterations):
      self._batches.clear()
      self.trainer.iteration()
      found.append(self._digests())
    self.made = [request.key[:3] for request in calls.made]
    pool.close()
    return found

  def _digests(self):
    stateful = self.trainer._stateful
    (batch,) = self._batches
    names = ('response_BT', 'logp_behaviour_BT', 'policy_version_B')
    found = {name: _digest(getattr(batch, name)) for name in names}
    found['arrays'] = _digest(saving.arrays_of(stateful))
    host = saving.host_of(stateful)
    host['offsets'].pop('time/wall_seconds')  # of the process
    host = json.dumps(host, sort_keys=True)
    found['host'] = hashlib.sha256(host.encode()).hexdigest()
    return found


def _digest(tree):
  known = hashlib.sha256()
  for leaf in jax.tree.leaves(tree):
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(
      leaf.dtype, jax.dtypes.prng_key
    ):
      leaf = jax.random.key_data(leaf)
    host = np.asarray(jax.device_get(leaf))
    known.update(f'{host.dtype} {host.shape}'.encode() + host.tobytes())
  return known.hexdigest()


def attack(
  orders: int, iterations: int, staleness: int, workdir: str, game: bool = False
) -> dict[str, Any]:
  """The line: how many orders there were, and which differ from the first."""
  ways = itertools.cycle(
    (law, most, coroutines)
    for law in LAWS
    for most in AT_ONCE
    for coroutines in (False, True)
  )
  played = Orders(staleness, workdir, game)
  known, differing, different_orders = None, [], set()
  with jax.set_mesh(played.trainer.parts.mesh):
    played.trainer.save()
    played.trainer.saver.check_newest()
    for seed, way in zip(range(orders), ways, strict=False):
      found = played.played(way, seed, iterations)
      known = known or found
      different_orders.add(tuple(played.made))
      differing += [
        f'{way} seed {seed}, iteration {number + 1}: {name}'
        for number, (one, other) in enumerate(zip(found, known, strict=True))
        for name in one
        if one[name] != other[name]
      ]
      print(f'{seed + 1}: {way}', file=sys.stderr, flush=True)
    played.trainer.close()
  return {
    'attack': 'orders',
    'orders': orders,
    'different_orders': len(different_orders),
    'calls': len(played.made),
    'iterations': iterations,
    'staleness': staleness,
    'game': game,
    'differing': differing,
  }


def main() -> None:
  """Prints the line; exit status 1 if an order differs."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--orders', type=int, default=100)
  parser.add_argument('--iterations', type=int, default=4)
  parser.add_argument('--staleness', type=int, default=1)
  parser.add_argument('--game', action='store_true')
  args = parser.parse_args()
  with tempfile.TemporaryDirectory() as workdir:
    found = attack(
      args.orders, args.iterations, args.staleness, workdir, args.game
    )
  print(json.dumps(found))
  if found['differing']:
    sys.exit(1)


if __name__ == '__main__':
  main()
