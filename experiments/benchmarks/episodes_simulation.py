"""Episodes with tools on one mesh, simulated: turns in step against slots.

In simulated seconds. A decoding step of r rows costs base * (versions of
weights among them) + row * r, an update `train` a token, an observation `feed`
a token. An episode has turns of sampled tokens, a tool call after each, and a
judge's call after the last.

  lockstep   all rows sample a turn, all tools answer, and so on; with `workers`
             rows are bound to so many of them. Only simulated.
  fixed, arrival    the rule of rl_jax.episodes.schedule, weights pinned
  newest     the fixed order; every token is sampled by the newest weights
  dropping   the first N groups that are complete; groups that started more than
             K updates ago are dropped (for comparison)

hedged: a call that has not answered after two means is made once more, and the
first answer counts. Reported are the share of the time in which the device
works, the speed relative to lockstep, how old groups are when they are trained,
what is dropped, and how slow the calls of the trained rows are.

Command: python -m experiments.benchmarks.episodes_simulation --turns=20
  --ratio=5 --kinds=lognormal
Cost: 10 seconds.
"""

import argparse
from collections.abc import Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from rl_jax.episodes.schedule import Begin, Close, Rule, Schedule

KINDS = ('constant', 'lognormal', 'heavy')
_MOST_PARETO = 122.7  # thirty means: a time limit
_MEAN_PARETO = 4.09


@dataclasses.dataclass(frozen=True)
class Cell:
  """Seconds of the device: of a step, of its rows, of tokens fed, trained."""

  base: float
  row: float
  feed: float
  train: float


# By arithmetic: 7B and 0.5B on one H100 with 2,000 tokens of context.
CELLS = {
  '7B': Cell(7.5e-3, 5e-5, 4e-5, 1.05e-4),
  '0.5B': Cell(1.5e-3, 1.2e-5, 3e-6, 7.5e-6),
  'CPU 8M': Cell(4e-3, 1.5e-4, 1e-4, 3e-4),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Load:
  """The rows of an update, and the lengths that they draw.

  groups, group: N, and rows of each. turns: of an episode, 1 to so many.
  tokens: of a turn, in the mean; spread: of their logarithm, 0: all alike.
  observation: tokens of it. burst: steps between two looks at answers. alike:
  spread of the slowness that the calls of a group share.
  """

  groups: int = 32
  group: int = 8
  turns: int = 20
  tokens: int = 96
  spread: float = 0.6
  observation: int = 64
  burst: int = 8
  alike: float = 0.6

  @property
  def rows(self) -> int:
    """The rows of an update."""
    return self.groups * self.group


class Data(NamedTuple):
  """Turns of each row, tokens of its turns, seconds of its calls."""

  turns: np.ndarray
  tokens: np.ndarray
  wait: np.ndarray


class Policy(NamedTuple):
  """A way of playing: a rule, and what samples and calls do beside it."""

  rule: str  # fixed, newest, arrival, dropping
  staleness: int
  hedged: bool = False

  @property
  def name(self) -> str:
    """Its name in the output."""
    return f'{self.rule} K={self.staleness}' + ' hedged' * self.hedged


POLICIES = (
  *(Policy('fixed', k) for k in (0, 1, 2, 4)),
  *(Policy('fixed', k, True) for k in (1, 2)),
  *(Policy('newest', k) for k in (1, 2)),
  Policy('dropping', 1),
  *(Policy('arrival', k) for k in (2, 3)),
  Policy('arrival', 3, True),
)


def latency(rng: Any, kind: str, mean: float, shape: tuple) -> np.ndarray:
  """Seconds of calls with that mean; 'heavy': of infinite variance, cut."""
  if kind == 'constant':
    return np.full(shape, mean)
  if kind == 'lognormal':
    return mean * rng.lognormal(-0.5, 1.0, shape)
  x = np.minimum(rng.pareto(1.2, shape) + 1.0, _MOST_PARETO)
  return mean * x / _MEAN_PARETO


def draw(
  load: Load, rows: int, kind: str, mean: float, hedged: bool, seed: int = 0
) -> Data:
  """The rows of a run; the tools of one prompt's group are slow together."""
  rng = np.random.default_rng(seed)
  turns = rng.integers(1, load.turns + 1, rows)
  logs = rng.lognormal(
    np.log(load.tokens) - load.spread**2 / 2, load.spread, (rows, load.turns)
  )
  # Without spread, logs are a rounding below whole numbers.
  tokens = np.maximum(min(4, load.tokens), logs + 1e-9).astype(int)
  wait = latency(rng, kind, mean, (rows, load.turns + 1))
  if hedged:
    again = latency(rng, kind, mean, wait.shape)
    wait = np.minimum(wait, 2 * mean + again)
  if kind != 'constant' and load.alike:
    groups = rows // load.group
    slow = rng.lognormal(-(load.alike**2) / 2, load.alike, groups)
    wait *= np.repeat(slow, load.group)[:, None]
  return Data(turns, tokens, wait)


def trained(load: Load, data: Data, rows: np.ndarray) -> int:
  """Tokens that an update of the rows trains on."""
  return sum(
    data.tokens[i, : data.turns[i]].sum() + load.observation * data.turns[i]
    for i in rows
  )


def lockstep(
  cell: Cell,
  load: Load,
  data: Data,
  updates: int,
  workers: int | None = None,
  before: int = 0,
) -> dict[str, float]:
  """Seconds and busy share of turns in step; workers: None: one a row.

  before: updates that are played first, and not timed.
  """
  elapsed = busy = 0.0

  def barrier(wait, place):
    if workers is None:
      return wait.max()
    return np.bincount(place % workers, wait).max()

  for update in range(before, before + updates):
    own = np.arange(update * load.rows, (update + 1) * load.rows)
    for k in range(data.turns[own].max()):
      live = own[data.turns[own] > k]
      n = np.sort(data.tokens[live, k])
      steps, left = np.diff(np.r_[0, n]), len(n) - np.arange(len(n))
      work = (steps * (cell.base + cell.row * left)).sum()
      work += cell.feed * load.observation * len(live)
      elapsed += work + barrier(data.wait[live, k], live % load.rows)
      busy += work
    elapsed += barrier(data.wait[own, -1], own % load.rows)  # judges
    work = cell.train * trained(load, data, own)
    elapsed, busy = elapsed + work, busy + work
  return {'time': elapsed, 'busy': busy / elapsed}


class Dropping:
  """The first N groups that are complete, none older than K updates."""

  def __init__(self, rule: Rule):
    self._rule, self._pool = rule, []
    self._version: dict[int, int] = {}
    self.update = self.started = self.dropped = 0

  def updated(self) -> list[Begin | Close]:
    """See Schedule."""
    rule = self._rule
    ahead = (self.update + rule.staleness + 1) * rule.groups + self.dropped
    groups = range(self.started, max(self.started, ahead))
    self._version |= dict.fromkeys(groups, self.update)
    self.started = groups.stop
    begin = Begin(self.update, groups)
    return [begin, *self._closed()]

  def judged(self, serial: int) -> list[Begin | Close]:
    """See Schedule."""
    self._pool.append(serial)
    return self._closed()

  def _closed(self):
    found: list[Begin | Close] = []
    oldest = self.update - self._rule.staleness
    old = [g for g in self._pool if self._version[g] < oldest]
    self._pool = [g for g in self._pool if g not in old]
    self.dropped += len(old)
    if old:  # others start in their places
      groups = range(self.started, self.started + len(old))
      self._version |= dict.fromkeys(groups, self.update)
      self.started = groups.stop
      found.append(Begin(self.update, groups))
    N = self._rule.groups
    if len(self._pool) >= N:
      groups, self._pool = tuple(self._pool[:N]), self._pool[N:]
      found.append(Close(self.update, groups, N, groups))
      self.update += 1
    return found


class _Slots:
  """The state of a simulation with slots: clock, rows, groups."""

  def __init__(
    self, cell: Cell, load: Load, data: Data, policy: Policy, at_once: int
  ):
    self.cell, self.load, self.data, self.policy = cell, load, data, policy
    self.at_once = at_once  # closings until which calls take no time
    order = 'arrival' if policy.rule == 'arrival' else 'fixed'
    rule = Rule(groups=load.groups, staleness=policy.staleness, order=order)
    dropping = policy.rule == 'dropping'
    self.schedule: Any = Dropping(rule) if dropping else Schedule(rule)
    total = len(data.turns)
    self.left, self.turn = np.zeros(total), np.zeros(total, int)
    self.ready = np.full(total, np.inf)
    # 0 has not started, 1 samples, 2 waits for an answer, 3 is over
    self.state = np.zeros(total, np.int8)
    self.version = np.zeros(total // load.group, int)
    self.over = np.zeros(total // load.group, int)
    self.time = self.busy = 0.0
    self.first = 0  # rows before it are over
    self.taken: list[int] = []
    self.lags: list[int] = []
    self.versions: list[int] = []
    self.peak = 0

  def work(self, seconds: float) -> None:
    """The device works."""
    self.time, self.busy = self.time + seconds, self.busy + seconds

  def act(self, actions: Sequence[Begin | Close]) -> Close | None:
    """Starts groups; returns a closing if there is one."""
    size, close = self.load.group, None
    for action in actions:
      if isinstance(action, Close):
        close = action
        continue
      rows = slice(action.groups.start * size, action.groups.stop * size)
      self.left[rows], self.state[rows] = self.data.tokens[rows, 0], 1
      self.version[action.groups.start : action.groups.stop] = action.version
    return close

  def hear(self, live: np.ndarray) -> Close | None:
    """Answers that have come: rows continue, and groups are judged."""
    back = live[(self.state[live] == 2) & (self.ready[live] <= self.time)]
    judged = back[self.turn[back] >= self.data.turns[back]]
    again = back[self.turn[back] < self.data.turns[back]]
    self.state[judged], self.state[again] = 3, 1
    self.left[again] = self.data.tokens[again, self.turn[again]]
    size, close = self.load.group, None
    for g in np.unique(judged // size):
      self.over[g] = (self.state[g * size : (g + 1) * size] == 3).sum()
      if self.over[g] == size:
        close = self.act(self.schedule.judged(int(g))) or close
    return close

  def train(self, close: Close) -> None:
    """An update, after which its weights exist."""
    size = self.load.group
    own = np.array(close.groups)
    rows = (own[:, None] * size + np.arange(size)).ravel()
    self.lags += [close.update - int(self.version[g]) for g in own]
    self.taken += close.groups
    self.work(self.cell.train * trained(self.load, self.data, rows))

  def burst(self, live: np.ndarray) -> None:
    """Steps of the rows that sample; without any, time passes."""
    load, cell, data = self.load, self.cell, self.data
    going = live[self.state[live] == 1][: load.rows]
    self.peak = max(self.peak, int((self.state[live] < 3).sum()))
    if not len(going):
      self.time = self.ready[live[self.state[live] == 2]].min()
      return
    versions = 1
    if self.policy.rule in ('fixed', 'arrival'):
      versions = len(np.unique(self.version[going // load.group]))
    self.versions.append(versions)
    fed = self.left[going] == data.tokens[going, self.turn[going]]
    fed &= self.turn[going] > 0
    steps = load.burst * (cell.base * versions + cell.row * len(going))
    self.work(steps + cell.feed * load.observation * fed.sum())
    self.left[going] -= load.burst
    ended = going[self.left[going] <= 0]
    next_call = data.wait[ended, self.turn[ended]]
    last = self.turn[ended] + 1 >= data.turns[ended]
    wait = np.where(last, data.wait[ended, -1], next_call)
    if self.schedule.update < self.at_once:
      wait = np.zeros_like(wait)
    self.ready[ended] = self.time + wait
    self.turn[ended] += 1
    self.state[ended] = 2


def slots(
  cell: Cell,
  load: Load,
  data: Data,
  updates: int,
  policy: Policy,
  before: int = 0,
) -> dict[str, float]:
  """Seconds, busy share and ages of a run with slots, one a row of an update.

  before: updates that are played first, and not timed; until K of them are left
  calls take no time, as in a run that compiles its programs.

  lag, mean_lag: updates between start and training of groups. dropped: share
  of groups. slow: calls of trained rows over those of all. versions: of the
  weights in a burst. peak: rows that are live.
  """
  s = _Slots(cell, load, data, policy, before - policy.staleness)
  close = s.act(s.schedule.updated())
  started = busy = 0.0
  while s.schedule.update < before + updates or close is not None:
    if close is not None:
      s.train(close)
      if s.schedule.update == before:
        started, busy = s.time, s.busy
      if s.schedule.update == before + updates:
        break
      close = s.act(s.schedule.updated())
      continue
    while s.state[s.first] == 3:
      s.first += 1
    live = np.arange(s.first, s.schedule.started * load.group)
    close = s.hear(live)
    if close is None:
      s.burst(live)
  size = load.group
  rows = (np.array(s.taken)[:, None] * size + np.arange(size)).ravel()
  every = data.wait[: s.schedule.started * size].mean()
  dropped = s.schedule.dropped if policy.rule == 'dropping' else 0
  return {
    'time': s.time - started,
    'busy': (s.busy - busy) / (s.time - started),
    'lag': max(s.lags),
    'mean_lag': float(np.mean(s.lags)),
    'dropped': dropped / (dropped + len(s.taken)),
    'slow': data.wait[rows].mean() / max(every, 1e-9),
    'versions': float(np.mean(s.versions)),
    'peak': s.peak,
  }


def simulated(
  cell: Cell, load: Load, kind: str, ratio: float, updates: int, seed: int = 0
) -> dict[str, dict[str, float]]:
  """The results of each policy; ratio: a mean call in decoded turns.

  speed: relative to lockstep with a worker a row.
  """
  mean = ratio * load.tokens * (cell.base + cell.row * load.rows)
  rows = load.rows * (updates + 12) * 2
  data = {h: draw(load, rows, kind, mean, h, seed) for h in (False, True)}
  found = {
    'lockstep': lockstep(cell, load, data[False], updates),
    'lockstep, 16 workers': lockstep(cell, load, data[False], updates, 16),
  }
  for policy in POLICIES:
    own = data[policy.hedged]
    found[policy.name] = slots(cell, load, own, updates, policy)
  none = Data(*data[False][:2], data[False].wait * 0)
  instant = slots(cell, load, none, updates, Policy('fixed', 1))
  found['no latency'] = instant
  reference = found['lockstep']['time']
  for one in found.values():
    one['speed'] = reference / one['time']
  return found


def _parsed() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--cell', default='7B', choices=CELLS)
  parser.add_argument('--updates', type=int, default=10)
  parser.add_argument('--groups', type=int, default=32)
  parser.add_argument('--group', type=int, default=8, help='rows of a group')
  parser.add_argument('--tokens', type=int, default=96, help='of a turn')
  parser.add_argument('--ratio', type=float, nargs='+', default=[0.2, 1, 5, 20])
  parser.add_argument('--turns', type=int, nargs='+', default=[1, 5, 20])
  parser.add_argument('--kinds', nargs='+', default=KINDS, choices=KINDS)
  parser.add_argument('--alike', type=float, default=0.6)
  parser.add_argument('--seed', type=int, default=0)
  return parser.parse_args()


def main() -> None:
  """Prints a line for each policy of each load."""
  args = _parsed()
  cell = CELLS[args.cell]
  for turns in args.turns:
    load = Load(
      groups=args.groups,
      group=args.group,
      turns=turns,
      tokens=args.tokens,
      alike=args.alike,
    )
    for kind in args.kinds:
      for ratio in args.ratio:
        found = simulated(cell, load, kind, ratio, args.updates, args.seed)
        print(f'{args.cell}, 1 to {turns} turns, {kind} calls x{ratio}')
        for name, one in found.items():
          print(_line(name, one), flush=True)


def _line(name: str, one: dict[str, float]) -> str:
  text = f'  {name:22} busy {one["busy"]:.2f}, speed {one["speed"]:5.2f}'
  if 'lag' in one:
    text += f', age {one["mean_lag"]:.1f} <= {one["lag"]}'
    text += f', dropped {one["dropped"]:.2f}, slow {one["slow"]:.2f}'
    text += f', versions {one["versions"]:.2f}, live {one["peak"]}'
  return text


if __name__ == '__main__':
  main()
