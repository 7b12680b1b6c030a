"""Times episodes of several turns with an environment that says the same.

Policy tokens of a turn and observations have fixed lengths: no row ends early,
but where that is what is timed.
"""

from collections.abc import Callable
import dataclasses
import functools
import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks import timing
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.slot_engine import SlotPrograms
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.planning import costs
from rl_jax.runs import assembly
from rl_jax.runtime.platform import Platform
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask, Reply
from rl_jax.types import ENVIRONMENT
from rl_jax.verification.sessions import SessionPool

STAGE = 'turns'
SHAPE = costs.Shape(8, 8, 64, 8)  # new_tokens: of the policy, a turn
SAID = 24  # tokens of an observation
LENGTHS = (2, 4, 8, 16)  # turns of an episode


class Says(Environment):
  """An episode of so many turns, or one that does not end.

  A step takes some microseconds.
  """

  def __init__(self, task: 'Constant', turns: float):
    self._task, self._left = task, turns

  def reset(self, seed: int) -> Reply:
    """The prompt."""
    del seed
    return Reply('p' * self._task.prompt)

  def step(self, action: str) -> Reply:
    """Waits, then says as much as always."""
    until = time.perf_counter() + self._task.microseconds / 1e6
    while time.perf_counter() < until:
      pass
    self._left -= 1
    return Reply('o' * SAID, done=self._left <= 0)


@dataclasses.dataclass(frozen=True)
class Constant(EnvironmentTask):
  """Prompts and observations of fixed lengths, in bytes.

  lengths: turns of the episodes, prompt by prompt; (): they do not end.
  """

  prompt: int = 64
  microseconds: float = 20.0
  lengths: tuple[int, ...] = ()
  traits = TaskTraits(global_random=False)

  def make(self, example: Example) -> Says:
    """One episode."""
    own = self.lengths
    return Says(self, own[example.id % len(own)] if own else math.inf)


class Turns:
  """Episodes of so many turns; those of fewer are the first turns of them.

  lengths: of Constant. narrows: fewer rows have calls of fewer slots.
  """

  def __init__(
    self,
    cfg: Any,
    shape: costs.Shape,
    mesh: Any,
    turns: int,
    workers: int = 0,
    *,
    lengths: tuple[int, ...] = (),
    narrows: bool = True,
  ):
    self._shape, self._turns = shape, turns
    # Of this process only, unless it waits for others.
    self._clock = time.perf_counter if workers else own_clock()
    self._size = turns * (shape.new_tokens + SAID) - SAID
    limits = TurnConfig(
      max_turns=turns,
      max_turn_tokens=shape.new_tokens,
      max_observation_tokens=SAID,
    )
    task = Constant(prompt=shape.prompt_tokens, lengths=lengths)
    tokenizer = ByteTokenizer()
    self.engine = make_engine(
      cfg,
      decoding.SamplingConfig(eos_ids=()),
      EngineConfig(
        group_size=shape.group_size,
        max_response_tokens=self._size,
        turns=limits,
      ),
      mesh,
    )
    programs = self.engine.slots
    assert programs is not None
    self._time(programs)
    if not narrows:
      programs.limits = programs.limits._replace(most=1)
    self._episodes = _episodes(task, workers, tokenizer, limits)
    prompts = EpisodePrompts(
      task, 'train', tokenizer, shape.prompt_tokens, begin=self._episodes.open
    )
    self._examples, *arrays = prompts.batch(range(shape.num_prompts))
    self._empty = self.engine.start(*arrays, 0, 0)
    self._key = assembly.run_key(0, mesh)
    self._params = params_lib.init_params(cfg, self._key, mesh)
    self.device_seconds: list[float] = []  # of each burst, with what is fed
    self._fed = 0.0  # seconds since the last burst
    self._again = jax.jit(
      functools.partial(
        decoding.generate,
        cfg=cfg,
        sampling=decoding.SamplingConfig(eos_ids=()),
        max_new_tokens=shape.new_tokens,
      )
    )

  def _time(self, programs: SlotPrograms) -> None:
    """Notes the seconds of each call, which then runs beside no other."""

    def noted(call: Callable, ends: bool) -> Callable:
      def timed(*args, **kwargs):
        started = self._clock()
        result = jax.block_until_ready(call(*args, **kwargs))
        self._fed += self._clock() - started
        if ends:
          self.device_seconds.append(self._fed)
          self._fed = 0.0
        return result

      return timed

    programs.begin = noted(programs.begin, False)
    programs.feed = noted(programs.feed, False)
    programs.sample = noted(programs.sample, True)

  @property
  def seconds_by_turn(self) -> list[float]:
    """Seconds on the device; all rows have as many bursts in each turn."""
    parts = np.array_split(np.array(self.device_seconds), self._turns)
    return [float(part.sum()) for part in parts]

  def play(self) -> None:
    """Whole episodes."""
    self.device_seconds, self._fed = [], 0.0
    traj = self._episodes.play(
      self.engine, self._params, self._empty, self._key, self._examples
    )
    jax.block_until_ready(traj)

  def host_share(self) -> float:
    """The share of the time of whole episodes in which the device waits."""
    started = self._clock()
    self.play()
    return 1 - sum(self.device_seconds) / (self._clock() - started)

  def close(self) -> None:
    """Ends the workers."""
    self._episodes.close()

  def generate(self) -> None:
    """One response of as many tokens, as tasks without turns have."""
    traj = self.engine.generate(self._params, traj=self._empty, key=self._key)
    jax.block_until_ready(traj)

  def play_without_caches(self) -> None:
    """The same tokens, but each turn encodes all that was said before."""
    traj = self._empty
    said_BO = jnp.full((self._shape.rows, SAID), ord('o'), jnp.int32)
    for turn in range(self._turns):
      traj = self._again(self._params, traj=traj, key=self._key)
      jax.block_until_ready(traj)
      if turn + 1 < self._turns:
        traj = _with(traj, said_BO)


def _episodes(task, workers, tokenizer, limits):
  """Episodes of environments in worker processes; 0: in this process."""
  pool = SessionPool(task, workers)
  turns = TurnTaking(
    task, tokenizer=tokenizer, stop=make_stop(tokenizer), turns=limits
  )
  return SlotRunner(turns, NumberedCalls(pool))


@jax.jit
def _with(traj, said_BO):
  """The same observation after every row; all have one length."""
  length = traj.length_B[0]
  put = functools.partial(jax.lax.dynamic_update_slice_in_dim, axis=1)
  kind_BO = jnp.full_like(said_BO, ENVIRONMENT)
  return traj.replace(
    response_BT=put(traj.response_BT, said_BO, length),
    kind_BT=put(traj.kind_BT, kind_BO, length),
    length_B=traj.length_B + SAID,
  )


def own_clock() -> timing.Clock:
  """The clock: on CPU the time of this process, least changed by other load."""
  cpu = Platform.of_process().is_cpu
  return time.process_time if cpu else time.perf_counter


def measured(
  cfg: Any, shape: costs.Shape, mesh: Any, repeats: int
) -> dict[str, Any]:
  """Seconds (see own_clock) and ratios of one process.

  turn_16_over_2: seconds on the device of the 16th turn over those of the
  second. seconds_by_turns, seconds_a_turn: of whole episodes, each with room
  for its own tokens; wall_seconds_by_turns: by the wall clock. host_share: of
  an episode, the time in which the device waits for environments and host.
  single_turn_over_generate: an episode of one turn over a response of as many
  tokens, called in turn. times_without_caches: what every turn would cost that
  encodes all again, over the kept caches. times_without_narrowing: episodes of
  which each prompt's end in turn, the last at the limit, if each call had slots
  for all rows, over these.
  """
  made = {turns: Turns(cfg, shape, mesh, turns) for turns in LENGTHS}
  totals, wall, ratios, shares, clock = {}, {}, [], [], own_clock()
  for turns, one in made.items():
    seconds, elapsed = [], []
    for repeat in range(repeats + 1):
      started, begun = clock(), time.perf_counter()
      one.play()
      whole = clock() - started
      if not repeat:
        continue  # compiles
      elapsed.append(time.perf_counter() - begun)
      seconds.append(whole)
      if turns == LENGTHS[-1]:
        by_turn = one.seconds_by_turn
        ratios.append(by_turn[-1] / by_turn[1])
        shares.append(1 - sum(one.device_seconds) / whole)
    totals[turns] = float(np.median(seconds))
    wall[turns] = float(np.median(elapsed))
  without = {}
  for turns in LENGTHS[-2:]:
    seconds = timing.seconds(made[turns].play_without_caches, repeats, clock)
    without[turns] = float(np.median(seconds)) / totals[turns]
  long = dataclasses.replace(
    shape, new_tokens=LENGTHS[-2] * (shape.new_tokens + SAID)
  )
  single = Turns(cfg, long, mesh, 1)
  times = timing.seconds_in_turn(
    {'play': single.play, 'generate': single.generate}, repeats, clock=clock
  )
  pairs = np.divide(times['play'], times['generate'])
  ratio = _times_without_narrowing(cfg, shape, mesh, repeats, clock)
  return {
    'turn_16_over_2': float(np.median(ratios)),
    'seconds_by_turns': totals,
    'wall_seconds_by_turns': wall,
    'seconds_a_turn': {turns: x / turns for turns, x in totals.items()},
    'host_share': float(np.median(shares)),
    'single_turn_over_generate': float(np.median(pairs)),
    'times_without_caches': without,
    'times_without_narrowing': ratio,
  }


def _times_without_narrowing(cfg, shape, mesh, repeats, clock):
  """The calls in turn."""
  most, count = LENGTHS[-1], shape.num_prompts
  lengths = tuple(-(-most * (i + 1) // count) for i in range(count))
  both = {
    name: Turns(cfg, shape, mesh, most, lengths=lengths, narrows=narrows).play
    for name, narrows in (('narrow', True), ('wide', False))
  }
  times = timing.seconds_in_turn(both, repeats, clock=clock)
  return float(np.median(np.divide(times['wide'], times['narrow'])))


def host_shares(
  cfg: Any, shape: costs.Shape, mesh: Any, repeats: int, workers: int
) -> dict[str, Any]:
  """host_share as of `measured`, by the wall clock, with worker processes."""
  one = Turns(cfg, shape, mesh, LENGTHS[-1], workers)
  try:
    one.play()  # compiles
    shares = [one.host_share() for _ in range(repeats)]
  finally:
    one.close()
  return {
    'workers': workers,
    'host_share': float(np.median(shares)),
    'host_shares': shares,
  }
