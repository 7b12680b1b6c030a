"""Times batches of episodes: without latency, and very many at once.

  python -m experiments.benchmarks.free_turns --part=latency
  python -m experiments.benchmarks.free_turns --part=live --episodes=10000

Nothing is trained. Prints a JSON line.

  latency   batches whose environments answer at once, in this process. seconds:
            of a batch, the median with the least and the most of --batches.
            host_share: of the time, in which no program runs. programs: their
            number.
  live      batches whose environments are coroutines that sleep are played in
            --slots slots: --few episodes and then --episodes. rate_ratio:
            tokens a second of the many over those of the few. memory_gb: what
            the process grows by while they are played, beside the keys and
            values, ids, log-probs and records that are planned for them;
            kb_a_token: of keys and values.
"""

import argparse
import asyncio
from collections.abc import Sequence
import dataclasses
import json
import os
import random
import threading
import time
from typing import Any
import zlib

import jax
import numpy as np

from experiments.benchmarks.stages import PRESETS
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import timeline
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models import platform, presets
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.runs import assembly
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask, Reply
from rl_jax.tasks.environments.base import AsyncEnvironment
from rl_jax.verification.sessions import SessionPool

PROMPT, GROUP = 32, 8
RECORD = 2800  # bytes of Python objects that keep a turn, by tracemalloc


@dataclasses.dataclass(frozen=True)
class Drawn(EnvironmentTask):
  """Episodes of 1 to `turns` turns, whose steps sleep for `seconds`.

  said: letters of an observation. waits: they are coroutines.
  """

  num_train: int = 1 << 20
  turns: int = 5
  said: int = 16
  seconds: float = 0.0
  waits: bool = False

  @property
  def traits(self) -> TaskTraits:
    """Episodes draw from their own generators."""
    workers = 'asyncio' if self.waits else 'process'
    return TaskTraits(global_random=False, workers=workers)

  def make(self, example: Example) -> Any:
    """One episode."""
    return Waits(self) if self.waits else Answers(self)


class Answers(Environment):
  """An episode that answers at once; its first action says how long it is."""

  def __init__(self, task: Drawn):
    self._task, self._left = task, 0

  def reset(self, seed: int) -> Reply:
    """The prompt."""
    self._seed, self._left = seed, -1
    return Reply('p' * PROMPT)

  def step(self, action: str) -> Reply:
    """The observation, which is always the same."""
    own = random.Random(zlib.crc32(f'{self._seed} {action}'.encode()))
    if self._left < 0:
      self._left = own.randint(1, self._task.turns)
    self._left -= 1
    return Reply('o' * self._task.said, done=self._left == 0)


class Waits(AsyncEnvironment):
  """The same episode, which sleeps before it answers."""

  def __init__(self, task: Drawn):
    self._seconds, self._episode = task.seconds, Answers(task)

  async def reset(self, seed: int) -> Reply:
    """The prompt."""
    return self._episode.reset(seed)

  async def step(self, action: str) -> Reply:
    """The observation, later."""
    await asyncio.sleep(self._seconds)
    return self._episode.step(action)


class Batches:
  """Batches of groups; slots: None: all rows."""

  def __init__(
    self,
    cfg: Any,
    task: Drawn,
    groups: int,
    tokens: int,
    slots: int | None = None,
  ):
    limits = TurnConfig(
      max_turns=task.turns,
      max_turn_tokens=tokens,
      max_observation_tokens=task.said,
    )
    self.response = task.turns * (tokens + task.said) - task.said
    self._groups, self.rows = groups, groups * GROUP
    self.mesh = mesh_lib.make_mesh(
      mesh_lib.MeshConfig(data=1), jax.devices()[:1]
    )
    self.engine = make_engine(
      cfg,
      decoding.SamplingConfig(eos_ids=()),
      EngineConfig(
        group_size=GROUP,
        max_response_tokens=self.response,
        turns=limits,
        slots=slots,
      ),
      self.mesh,
    )
    tokenizer = ByteTokenizer()
    pool = SessionPool(task, None if task.waits else 0, 600.0)
    self.runner = SlotRunner(
      TurnTaking(
        task, tokenizer=tokenizer, stop=make_stop(tokenizer), turns=limits
      ),
      NumberedCalls(pool),
    )
    self._prompts = EpisodePrompts(
      task, 'train', tokenizer, PROMPT, begin=self.runner.open
    )
    self._key = assembly.run_key(0, self.mesh)
    self._params = params_lib.init_params(cfg, self._key, self.mesh)

  def play(self, number: int) -> tuple[float, int, float]:
    """(seconds, tokens that were sampled, seconds without a program)."""
    first = number * self._groups
    examples, *arrays = self._prompts.batch(range(first, first + self._groups))
    traj = self.engine.start(*arrays, first, 0)
    started = time.perf_counter()
    traj = self.runner.play(
      self.engine, self._params, traj, self._key, examples
    )
    jax.block_until_ready(traj)
    elapsed = time.perf_counter() - started
    busy = self.runner.activity.seconds(timeline.DEVICE)
    tokens = int(np.asarray(traj.mask_BT).sum())
    return elapsed, tokens, elapsed - busy


def latency(args: argparse.Namespace, cfg: Any) -> dict[str, Any]:
  """The line without latency."""
  task = Drawn(turns=args.turns)
  batches = Batches(cfg, task, args.groups, args.tokens)
  with jax.set_mesh(batches.mesh):
    batches.play(0)  # compiles
    played = [batches.play(number + 1) for number in range(args.batches)]
  batches.runner.close()
  programs = batches.engine.slots
  assert programs is not None
  seconds = [elapsed for elapsed, *_ in played]
  return {
    'seconds': float(np.median(seconds)),
    'interval': [min(seconds), max(seconds)],
    'tokens_a_second': float(np.median([n / x for x, n, _ in played])),
    'host_share': float(np.median([host / x for x, _, host in played])),
    'programs': 1 + len(programs.feeds) + len(programs.widths),
  }


class Resident:
  """The most memory of this process while it is entered, above the start."""

  def __enter__(self) -> 'Resident':
    self._first, self.most = _resident(), 0
    self._ends = threading.Event()
    self._thread = threading.Thread(target=self._watch)
    self._thread.start()
    return self

  def __exit__(self, *_: object) -> None:
    self._ends.set()
    self._thread.join()

  def _watch(self):
    while not self._ends.wait(0.05):
      self.most = max(self.most, _resident() - self._first)


def _resident():
  with open('/proc/self/statm', encoding='utf-8') as file:
    return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def live(args: argparse.Namespace, cfg: Any) -> dict[str, Any]:
  """The line of very many episodes."""
  task = Drawn(turns=args.turns, said=8, seconds=args.seconds, waits=True)
  found: dict[str, Any] = {}
  rates = []
  token = 2 * cfg.num_layers * cfg.num_kv_heads * cfg.head_size * 4
  for count in (args.few, args.episodes):
    groups = count // GROUP
    batches = Batches(cfg, task, groups, args.tokens, args.slots)
    with jax.set_mesh(batches.mesh):
      seconds, tokens, _ = batches.play(0)  # compiles
      with Resident() as memory:
        seconds, tokens, host = batches.play(1)
    batches.runner.close()
    rates.append(tokens / seconds)
    places = groups * PROMPT + batches.rows * batches.response
    # Ids, kinds, masks, log-probs and marks of a row, before and after.
    planned = places * token + batches.rows * batches.response * 4 * 10
    planned += batches.rows * task.turns * RECORD
    found[f'{count} episodes'] = {
      'seconds': seconds,
      'tokens_a_second': rates[-1],
      'host_share': host / seconds,
      'memory_gb': memory.most / 1e9,
      'planned_gb': planned / 1e9,
      'memory_ratio': memory.most / planned,
      'slots_share': batches.runner.activity.metrics()['device/slots_share'],
    }
  return {
    **found,
    'rate_ratio': rates[1] / rates[0],
    'kb_a_token': token / 1e3,
    'response_tokens': batches.response,
  }


def line(words: Sequence[str] | None = None) -> dict[str, Any]:
  """The results by the flags; None: those of the process."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--part', choices=('latency', 'live'), required=True)
  parser.add_argument('--preset', default='tiny', choices=('world', *PRESETS))
  parser.add_argument('--turns', type=int, default=5)
  parser.add_argument('--tokens', type=int, default=16, help='of a turn')
  parser.add_argument('--groups', type=int, default=4, help='of 8 rows')
  parser.add_argument('--batches', type=int, default=7)
  parser.add_argument('--episodes', type=int, default=10_000)
  parser.add_argument('--few', type=int, default=512)
  parser.add_argument('--slots', type=int, default=256)
  parser.add_argument('--seconds', type=float, default=0.5, help='of a call')
  args = parser.parse_args(words)
  small = presets.small(vocab_size=258)
  cfg = small if args.preset == 'world' else PRESETS[args.preset]
  cfg = dataclasses.replace(
    platform.resolve(cfg, platform=Platform.of_process()),
    vocab_size=max(cfg.vocab_size, 258),
    max_positions=2048,
  )
  part = {'latency': latency, 'live': live}[args.part]
  return {'benchmark': 'free_turns', **vars(args), **part(args, cfg)}


if __name__ == '__main__':
  print(json.dumps(line()), flush=True)
