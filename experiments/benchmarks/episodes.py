"""Times runs of episodes whose tools sleep, beside their simulation.

Each way of playing is a run of the trainer with a learning rate of 0, so that
all of them play the same episodes. Tools sleep for times drawn from the seed of
an episode and its action. Until a first batch is complete they answer at once,
and the clock starts two or more updates later: programs are compiled then.
The seconds of a step, of feeding and of training are those of the run itself,
from its trace (--timeline), and the simulation (episodes_simulation) plays the
same episodes with them: the numbers differ by what the runner costs, not by how
busy the machine is. It also plays them in step: each turn of all rows waits for
the slowest call, as no runner here does.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import tempfile
import time
from typing import Any, NamedTuple
import zlib

import jax
import numpy as np

from configs.methods import grpo
from experiments.benchmarks import episodes_simulation as simulation
from experiments.benchmarks import traces
from experiments.benchmarks.episodes_simulation import Cell, Data, Load, Policy
from rl_jax.config import EvaluationConfig, ExperimentConfig, GuardConfig
from rl_jax.episodes import timeline
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runs.loop import Trainer
from rl_jax.runtime.profiling import Window
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask, Reply
from rl_jax.tasks.environments.base import seed_of
from rl_jax.verification.pool import VerifierConfig

STAGE = 'episodes'
PROMPT, SAID = 32, 16  # tokens
FIRST = 0x100  # the first of the letters that tokens are
SECONDS = 'seconds'  # of a call, in the info of replies


class Sleeps(Environment):
  """An episode of a drawn number of turns, whose steps take drawn times."""

  def __init__(self, task: 'Slow', example: Example):
    self._task, self._example = task, example
    self._left = 0

  def reset(self, seed: int) -> Reply:
    """The prompt, at once."""
    self._seed, self._left = seed, -1
    return Reply(chr(FIRST) * PROMPT)

  def continue_after(self, actions: tuple[str, ...]) -> None:
    """After these actions, which take no time."""
    self._seed, self._left = seed_of(self._example), -1
    for action in actions:
      self._drawn(action)

  def step(self, action: str) -> Reply:
    """Sleeps; the first action says how many turns there are."""
    task, own = self._task, self._drawn(action)
    seconds = slept = task.seconds(own)
    rewards = {'outcome': float(own.random() < 0.5)}
    open_ = not task.gate or os.path.exists(task.gate)
    if task.hedged:
      again = task.seconds(own)
      if open_ and not self._is_first(action):
        slept = again
      seconds = min(seconds, 2.0 * task.mean + again)
    if open_:
      time.sleep(slept)
    return Reply(
      chr(FIRST + 1) * SAID,
      rewards=rewards,
      done=self._left == 0,
      info={SECONDS: seconds},
    )

  def _drawn(self, action):
    """The generator of a step, which is then counted."""
    own = random.Random(zlib.crc32(f'{self._seed} {action}'.encode()))
    if self._left < 0:
      self._left = own.randint(1, self._task.turns)
    self._left -= 1
    return own

  def _is_first(self, action):
    """Returns whether no process has made this step before."""
    step = f'{self._seed} {self._left} {action}'.encode()
    try:
      with open(f'{self._task.gate}_{zlib.crc32(step)}', 'x', encoding='utf-8'):
        return True
    except FileExistsError:
      return False


@dataclasses.dataclass(frozen=True)
class Slow(EnvironmentTask):
  """Environments whose steps take `mean` seconds in the mean, see latency.

  gate: a file without which they take no time; '': they always do.
  hedged: a step that takes two means is made once more, and then takes another
  time; it needs a gate, beside which steps are marked. The seconds in an info
  are those until the first answer of both.
  """

  turns: int = 5
  kind: str = 'lognormal'
  mean: float = 0.1
  letters: int = 510
  gate: str = ''
  hedged: bool = False

  @property
  def traits(self) -> TaskTraits:
    """Episodes draw from their own generators."""
    again = self.hedged
    return TaskTraits(global_random=False, stateless=again, pure=again)

  @property
  def alphabet(self) -> str:
    """The letters that tokens are."""
    return ''.join(map(chr, range(FIRST, FIRST + self.letters)))

  def make(self, example: Example) -> Sleeps:
    """One episode."""
    return Sleeps(self, example)

  def seconds(self, own: random.Random) -> float:
    """The time of a step."""
    rng = np.random.default_rng(own.getrandbits(32))
    return float(simulation.latency(rng, self.kind, self.mean, (1,))[0])


class Way(NamedTuple):
  """A way of playing: fields of a rollout, and the policy that simulates it."""

  name: str
  rollout: Mapping[str, Any]
  policy: Policy

  @property
  def staleness(self) -> int:
    """K."""
    return self.policy.staleness


def with_staleness(staleness: int, hedged: bool = False, **rollout: Any) -> Way:
  """The fixed order, or what else fields of the rollout say."""
  policy = Policy(rollout.get('order', 'fixed'), staleness, hedged)
  return Way(policy.name, {'staleness': staleness, **rollout}, policy)


ON_POLICY = with_staleness(0)


def named(text: str) -> Way:
  """The way with the name of its policy, as 'arrival K=3'.

  Raises: ValueError for another text.
  """
  known = re.fullmatch(r'(fixed|arrival) K=(\d)( hedged)?', text)
  if known is None:
    raise ValueError(
      f'{text!r} is not a way of playing, as fixed K=0, arrival K=3 or '
      'fixed K=1 hedged'
    )
  order, staleness, hedged = known.groups()
  more = {} if order == 'fixed' else {'order': order}
  return with_staleness(int(staleness), hedged is not None, **more)


class Timed(Trainer):
  """A run that waits for each update, notes when, and opens a gate after one.

  opens: the number of that update.
  """

  gate: pathlib.Path
  opens: int

  def iteration(self) -> dict[str, Any]:
    """See Trainer."""
    metrics = super().iteration()
    jax.block_until_ready(self.state)
    if self.counters.iteration == self.opens:
      self.gate.touch()
    return metrics


class Played(NamedTuple):
  """A run; rows: the lines of rollouts.jsonl of all its updates."""

  spans: list[traces.Span]
  rows: list[dict[str, Any]]
  before: int  # updates before the clock starts
  updates: int

  @property
  def window(self) -> tuple[float, float]:
    """When the clock starts and ends."""
    ends = {
      span.name: span.end for span in self.spans if span.line == 'closings'
    }
    last = self.before + self.updates
    return ends[f'update {self.before}'], ends[f'update {last}']


def configuration(
  cfg: Any, load: Load, task: Slow, way: Way, iterations: int
) -> ExperimentConfig:
  """A run of so many updates that changes no weight."""
  tokens = load.turns * (load.tokens + SAID)
  longest = max(cfg.max_positions, PROMPT + tokens)
  model = dataclasses.replace(cfg, max_positions=longest)
  return ExperimentConfig(
    iterations=iterations,
    task=task,
    method=grpo.get_method(),
    model=ModelSource(config=model),
    rollout=RolloutConfig(
      num_prompts=load.groups,
      group_size=load.group,
      max_prompt_tokens=PROMPT,
      max_response_tokens=tokens,
      turns=TurnConfig(
        max_turns=load.turns,
        max_turn_tokens=load.tokens,
        max_observation_tokens=SAID,
      ),
      **way.rollout,
    ),
    update=UpdateConfig(microbatch_prompts=1),
    optimizer=OptimizerConfig(learning_rate=0.0),
    evaluation=EvaluationConfig(every=0),
    checkpoint=CheckpointConfig(every=1000),
    guards=GuardConfig(max_logp_gap=None, log_rollouts=load.groups),
    verifier=VerifierConfig(timeout_seconds=3600.0),
  )


def played(
  cfg: Any,
  load: Load,
  task: Slow,
  way: Way,
  before: int,
  updates: int,
  kept: str | None = None,
) -> Played:
  """A run in one way, in a folder that is then deleted.

  Calls take time from closing before - K on: so many batches are open then.
  kept: a folder that gets the trace.
  """
  last = before + updates
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder)
    hedged = way.policy.hedged
    task = dataclasses.replace(task, gate=str(path / 'gate'), hedged=hedged)
    config = configuration(cfg, load, task, way, last)
    trainer = Timed(config, str(path / 'run'))
    trainer.gate, trainer.opens = path / 'gate', before - way.staleness
    trainer.draw_timeline(Window(1, last))
    trainer.run()
    spans = traces.read(path / 'run' / 'timeline.json')
    if kept is not None:
      shutil.copy(path / 'run' / 'timeline.json', f'{kept}/{way.name}.json')
    text = (path / 'run' / 'rollouts.jsonl').read_text(encoding='utf-8')
  return Played(
    spans, [json.loads(x) for x in text.splitlines()], before, updates
  )


def measured(
  cfg: Any,
  load: Load,
  kind: str,
  mean: float,
  updates: int,
  ways: Sequence[Way],
  kept: str | None = None,
) -> dict[str, Any]:
  """Seconds, device share and speed of each way, and the simulated ones.

  mean: seconds of a call. ways: the first one starts no more episodes than it
  trains. speed: relative to turns in step, simulated with the seconds of the
  same run. share_ratio, speed_ratio: measured over simulated. kept: see played.
  """
  task = Slow(
    turns=load.turns, kind=kind, mean=mean, letters=cfg.vocab_size - 2
  )
  if kept is not None:
    os.makedirs(kept, exist_ok=True)
  before = 1 + max(way.staleness for way in ways)
  data, found = None, {}
  for way in ways:
    run = played(cfg, load, task, way, before, updates, kept)
    if data is None:
      data = drawn(load, run.rows, kind, mean)
    own = data
    if way.policy.hedged:
      own = drawn(load, run.rows, kind, mean, hedged=True)
    cell = cell_of(run, load)
    found[way.name] = {
      'measured': _shares(run),
      'simulated': _simulated(cell, load, own, run, way.policy),
      'in_step': _in_step(cell, load, data, run),
      'cell': dataclasses.asdict(cell),
      'turns_per_call': mean / (load.tokens * cell.base),
    }
  for one in found.values():
    known, model = one['measured'], one['simulated']
    for source in (known, model):
      source['speed'] = one['in_step']['time'] / source['time']
    one['share_ratio'] = known['busy'] / model['busy']
    one['speed_ratio'] = known['speed'] / model['speed']
  return found


def drawn(
  load: Load,
  rows: Sequence[Any],
  kind: str,
  mean: float,
  hedged: bool = False,
) -> Data:
  """The episodes of a run, in the order of their serials, and more of them."""
  count = len(rows) + 8 * load.rows
  data = simulation.draw(load, count, kind, mean, hedged)
  for n, row in enumerate(rows):
    turns = row['turns']
    data.turns[n] = len(turns)
    for k, turn in enumerate(turns):
      data.tokens[n, k] = max(1, len(turn['action']))
      data.wait[n, k] = turn['info'][SECONDS]
  # Nobody judges: what follows the last turn is its own call.
  every = np.arange(count)
  data.wait[:, -1] = data.wait[every, data.turns - 1]
  return data


def cell_of(run: Played, load: Load) -> Cell:
  """The seconds of steps and tokens in a run.

  Steps are those of bursts before which nothing was fed, see `step_cost`.
  Feeding is what the others take more.
  """
  start, end = run.window
  spans = [s for s in run.spans if start <= s.start and s.end <= end]
  updates = [s for s in spans if s.name.startswith('update')]
  tokens = sum(
    len(turn['action']) + SAID
    for row in run.rows
    if row['step'] > run.before
    for turn in row['turns']
  )
  seconds = sum(s.seconds for s in updates if s.line == timeline.DEVICE)
  train = seconds / tokens
  bursts = [s for s in spans if s.name == 'burst']
  bursts = [s for s in bursts if s.args['steps']]
  fed = [s for s in bursts if s.args['observations']]
  plain = [s for s in bursts if not s.args['observations']]
  each = [s.seconds / s.args['steps'] for s in plain or fed]
  base, row = min(each), 0.0
  if plain:
    base, row = step_cost([s.args['rows'] for s in plain], each)
  more = sum(
    s.seconds - (base + row * s.args['rows']) * s.args['steps'] for s in fed
  )
  count = sum(s.args['observations'] for s in fed)
  feed = max(0.0, more / (max(count, 1) * SAID))
  return Cell(base, row, feed, train)


def step_cost(
  rows: Sequence[int], seconds: Sequence[float]
) -> tuple[float, float]:
  """Seconds (of a step, of each of its rows more); neither is negative.

  A line through the medians of the bursts with fewer rows and with more.
  """
  rows_X, seconds_X = np.array(rows), np.array(seconds)
  many_X = rows_X > np.median(rows_X)
  if not many_X.any():
    return float(np.median(seconds_X)), 0.0
  few, many = (
    (rows_X[own_X].mean(), np.median(seconds_X[own_X]))
    for own_X in (~many_X, many_X)
  )
  row = max(0.0, (many[1] - few[1]) / (many[0] - few[0]))
  row = min(row, few[1] / few[0])  # or the step would begin below 0
  return float(few[1] - row * few[0]), float(row)


def _shares(run):
  start, end = run.window
  busy = traces.covered(run.spans, timeline.DEVICE, start, end)
  return {'time': end - start, 'busy': busy / (end - start)}


def _simulated(cell, load, data, run, policy):
  found = simulation.slots(
    cell, load, data, run.updates, policy, before=run.before
  )
  return {name: found[name] for name in ('time', 'busy')}


def _in_step(cell, load, data, run):
  """The same episodes if all rows had their turns together."""
  waits = data.wait.copy()
  waits[:, -1] = 0.0  # nobody judges
  shown = Data(data.turns, data.tokens, waits)
  return simulation.lockstep(cell, load, shown, run.updates, before=run.before)
