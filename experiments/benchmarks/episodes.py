"""Times episodes whose tools sleep, in step and in slots, beside a simulation.

Tools sleep for times drawn from the seed of an episode and its actions, so that
all ways of playing wait for the same calls. Turns have a fixed number of
tokens. The simulation (episodes_simulation) has the seconds of a step and of
feeding that this stage has measured; nothing is trained between the batches.
"""

import dataclasses
import random
import time
from typing import Any
import zlib

import jax
import numpy as np

from experiments.benchmarks import episodes_simulation as simulation
from experiments.benchmarks.episodes_simulation import Cell, Load, Policy
from rl_jax import decoding
from rl_jax.decoding.engine import Engine, EngineConfig, make_engine
from rl_jax.decoding.slot_decode import BURST
from rl_jax.decoding.slot_engine import RunningSlots
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.episodes import EpisodeRunner
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.timeline import DEVICE
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.runs import assembly
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask, Reply
from rl_jax.verification.sessions import SessionPool

STAGE = 'episodes'
PROMPT, SAID = 32, 16  # tokens


class Sleeps(Environment):
  """An episode of a drawn number of turns, whose steps take drawn times."""

  def __init__(self, task: 'Slow', example: Example):
    self._task, self._example = task, example
    self._left = 0

  def reset(self, seed: int) -> Reply:
    """The prompt, at once."""
    self._seed, self._left = seed, -1
    return Reply('p' * PROMPT)

  def step(self, action: str) -> Reply:
    """Sleeps; the first action says how many turns there are."""
    own = random.Random(zlib.crc32(f'{self._seed} {action}'.encode()))
    if self._left < 0:
      self._left = own.randint(1, self._task.turns)
    self._left -= 1
    time.sleep(self._task.seconds(own))
    return Reply('o' * SAID, done=self._left == 0)


@dataclasses.dataclass(frozen=True)
class Slow(EnvironmentTask):
  """Environments whose steps take `mean` seconds in the mean, see latency."""

  turns: int = 5
  kind: str = 'lognormal'
  mean: float = 0.1
  traits = TaskTraits(global_random=False)

  def make(self, example: Example) -> Sleeps:
    """One episode."""
    return Sleeps(self, example)

  def seconds(self, own: random.Random) -> float:
    """The time of a step."""
    rng = np.random.default_rng(own.getrandbits(32))
    return float(simulation.latency(rng, self.kind, self.mean, (1,))[0])


@dataclasses.dataclass(frozen=True)
class Batches:
  """Batches of groups, played in one way."""

  cfg: Any
  load: Load
  mesh: Any
  task: Slow

  def engine(self, free: bool) -> Engine:
    """In slots or in step; no token ends a turn early."""
    return make_engine(
      self.cfg,
      decoding.SamplingConfig(eos_ids=()),
      EngineConfig(
        group_size=self.load.group,
        max_response_tokens=self.load.turns * (self.load.tokens + SAID),
        turns=self._limits,
        free_turns=free,
      ),
      self.mesh,
    )

  @property
  def _limits(self):
    return TurnConfig(
      max_turns=self.load.turns,
      max_turn_tokens=self.load.tokens,
      max_observation_tokens=SAID,
    )

  def runner(self, kind: type[EpisodeRunner]) -> EpisodeRunner:
    """A runner with a worker process for each call that waits."""
    tokenizer = ByteTokenizer()
    return kind(
      self.task,
      NumberedCalls(SessionPool(self.task, None, 600.0)),
      tokenizer=tokenizer,
      stop=make_stop(tokenizer),
      turns=self._limits,
    )

  def inputs(self, runner: EpisodeRunner, engine: Engine, number: int) -> Any:
    """(empty rows, examples) of a batch."""
    prompts = EpisodePrompts(
      self.task, 'train', ByteTokenizer(), PROMPT, begin=runner.open
    )
    first = number * self.load.groups
    examples, *arrays = prompts.batch(range(first, first + self.load.groups))
    return engine.start(*arrays, first, 0), examples

  def params(self) -> tuple[Any, jax.Array]:
    """(weights, key) of the run."""
    key = assembly.run_key(0, self.mesh)
    return params_lib.init_params(self.cfg, key, self.mesh), key


def measured(
  cfg: Any, mesh: Any, load: Load, kind: str, ratio: float, updates: int
) -> dict[str, Any]:
  """Seconds, device share and speed of each way, and the simulated ones.

  ratio: a mean call in decoded turns. speed: relative to turns in step. One
  batch before those that are timed compiles and starts processes.
  """
  cell = seconds_of_steps(cfg, mesh, load)
  mean = ratio * load.tokens * cell.base
  batches = Batches(
    cfg, load, mesh, Slow(turns=load.turns, kind=kind, mean=mean)
  )
  found = {'lockstep': _in_step(batches, updates)}
  for staleness in (0, 1):
    found[f'fixed K={staleness}'] = _in_slots(batches, updates, staleness)
  rows = load.rows * (updates + 2) * 2
  data = simulation.draw(load, rows, kind, mean, False)
  data.wait[:, -1] = 0.0  # nobody judges
  simulated = {'lockstep': simulation.lockstep(cell, load, data, updates)}
  for staleness in (0, 1):
    policy = Policy('fixed', staleness)
    simulated[policy.name] = simulation.slots(cell, load, data, updates, policy)
  for both in (found, simulated):
    reference = both['lockstep']['time']
    for one in both.values():
      one['speed'] = reference / one['time']
  return {
    'cell': dataclasses.asdict(cell),
    'mean_call_seconds': mean,
    'measured': found,
    'simulated': {
      name: {key: one[key] for key in ('time', 'busy', 'speed')}
      for name, one in simulated.items()
    },
  }


def seconds_of_steps(cfg: Any, mesh: Any, load: Load) -> Cell:
  """The seconds of a step of all slots and of a fed token; medians of five.

  A program of slots takes the same time for few rows as for all.
  """
  batches = Batches(
    cfg, load, mesh, Slow(turns=load.turns, kind='constant', mean=0.0)
  )
  engine, runner = batches.engine(True), batches.runner(SlotRunner)
  traj, _ = batches.inputs(runner, engine, 0)
  runner.close()
  params, key = batches.params()
  assert engine.slots is not None
  engine.slots.settle(params, traj, key, SAID)
  every, steps, feeds = list(range(load.rows)), [], []
  for _ in range(5):
    slots = RunningSlots(engine.slots, params, traj, key, SAID)
    jax.block_until_ready(slots.table)
    started = time.perf_counter()
    slots.sample(every).read()
    sampled = time.perf_counter()
    slots.feed({row: ([ord('o')] * SAID, False) for row in every})
    jax.block_until_ready(slots.table)
    steps.append((sampled - started) / BURST)
    feeds.append((time.perf_counter() - sampled) / (load.rows * SAID))
  return Cell(float(np.median(steps)), 0.0, float(np.median(feeds)), 0.0)


def _in_step(batches, updates):
  engine, runner = batches.engine(False), batches.runner(EpisodeRunner)
  params, key = batches.params()
  busy, started = 0.0, time.perf_counter()
  try:
    for number in range(updates + 1):
      traj, examples = batches.inputs(runner, engine, number)
      if number == 1:
        started = time.perf_counter()
      runner.activity.begin()
      played = runner.play(engine, params, traj, key, examples)
      jax.block_until_ready(played)
      busy += runner.activity.seconds(DEVICE) * (number > 0)
  finally:
    runner.close()
  elapsed = time.perf_counter() - started
  return {'time': elapsed, 'busy': busy / elapsed}


def _in_slots(batches, updates, staleness):
  engine, runner = batches.engine(True), batches.runner(SlotRunner)
  assert isinstance(runner, SlotRunner)
  params, key = batches.params()
  games, busy, next_batch, started = [], 0.0, 0, time.perf_counter()
  try:
    for number in range(updates + 1):
      if number == 1:
        started = time.perf_counter()
      while next_batch <= min(number + staleness, updates):
        traj, examples = batches.inputs(runner, engine, next_batch)
        games.append(runner.start(engine, params, traj, key, examples))
        next_batch += 1
      game = games.pop(0)
      jax.block_until_ready(runner.finish(game, games))
      busy += runner.activity.seconds(DEVICE) * (number > 0)
  finally:
    runner.close()
  elapsed = time.perf_counter() - started
  return {'time': elapsed, 'busy': busy / elapsed}
