"""Batches of episodes that start updates before they are trained on.

With K = rollout.staleness the groups of later updates start when weights v
exist, which sample them to their end, while those of updates before are still
played. So more tools have work, and an update waits for fewer of them. What
starts and what is trained is the rule of episodes.schedule: in the fixed order
time changes neither; by arrival it decides which groups are trained together,
and what it has decided is in a file before the update (episodes.closings).

Groups that start together are one game of N groups at most. Its shape is always
that of N groups; the rows of those that are missing fill it and are not played.
The rule counts prompts: in games of several players each prompt has a group for
every player, which start, end and are trained together.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, ClassVar, NamedTuple

from absl import logging
import numpy as np

from rl_jax.episodes.game import Game
from rl_jax.episodes.schedule import Begin, Close, Rule, Schedule
from rl_jax.episodes.slot_runner import OPEN, SlotRunner
from rl_jax.judging.judges import UNREAD, Judges
from rl_jax.rollouts import responses
from rl_jax.rollouts.collect import Collector, kept_groups
from rl_jax.rollouts.join import take_from_rounds
from rl_jax.rollouts.rounds import Collected, Draw, Round, total_rewards
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import Trajectories
from rl_jax.verification.pool import Outcome


@dataclasses.dataclass(eq=False)
class _Batch:
  """Groups that have started together; mark: see SlotRunner.mark.

  indices: of their prompts. step: of the weights that sample them. left: those
  that no update has used. examples, game: of N groups. judges: with the weights
  that sample. The others are of runs with a filter. outcomes: of all rows, of
  groups that are not over nothing. rewarded: the rows with their rewards.
  beats_NGG, unread: see Judges; unread by group.
  """

  groups: range
  indices: np.ndarray
  mark: int
  step: int
  left: set[int]
  examples: Sequence[Any]
  game: Game
  judges: Judges
  outcomes: list[Outcome]
  rewarded: Trajectories | None = None
  beats_NGG: np.ndarray | None = None
  unread: dict[int, float] = dataclasses.field(default_factory=dict)

  @property
  def judged(self) -> Trajectories:
    """The rows with rewards, once some group is over."""
    assert self.rewarded is not None, 'no group has its rewards'
    return self.rewarded

  def saved(self) -> dict[str, Any]:
    """JSON, from which the batch can be started again."""
    return {
      'groups': [self.groups.start, self.groups.stop],
      'indices': self.indices.tolist(),
      'mark': self.mark,
    }


class Used(NamedTuple):
  """The groups of a closing, and how many steps older their weights were."""

  serials: Sequence[int]
  behind: list[int]

  def metrics(self) -> dict[str, float]:
    """Optimizer steps between the weights that sampled and the newest ones."""
    return {
      'rollout/steps_behind': float(np.mean(self.behind)),
      'rollout/steps_behind_max': float(max(self.behind)),
    }


Place = tuple[_Batch, int]  # a group: its batch, and its number there


class SlotCollector(Collector, Stateful):
  """A Collector whose episodes are played across updates."""

  name: ClassVar[str] = 'open episodes'

  def __init__(self, rollout: Any, **parts: Any):
    super().__init__(rollout, **parts)
    assert isinstance(self.runner, SlotRunner)
    self._players = self.prompts.players
    self._rule = Rule(
      groups=rollout.num_prompts // self._players,
      staleness=rollout.staleness,
      order=rollout.order,
      max_rounds=rollout.max_rounds,
    )
    self._schedule = Schedule(self._rule)
    self._repeat()
    if self._rule.by_arrival:
      logging.info(
        'rollout.order = %r: time decides which groups are trained together; '
        'the run is a function of its configuration and of %s',
        rollout.order,
        self.runner.closings.path,
      )
    self._batches: list[_Batch] = []  # that are played, the oldest first
    self._saved: list[Mapping[str, Any]] = []  # of a checkpoint, to be started
    self._drawing: Draw
    self._update = 0  # by the rule, and the serial of its group 0 in the run
    self._first = 0
    self._used = Used((), [])  # of the newest batch

  def collect(self, draw: Draw) -> Collected:
    """The batch of an iteration; the draw has the weights that exist now.

    They sample the groups that start now, for this update or a later one.
    """
    self._drawing = draw
    if draw.method.group_filter is None:
      found = super().collect(draw)
    else:
      found = self._filtered(draw)
    (done,) = found.rounds
    done.serials = self._first + np.array(self._used.serials)
    done.metrics = {**done.metrics, **self._used.metrics()}
    return found

  def host(self) -> dict[str, Any]:
    """The state of the rule, and the prompts of the open batches."""
    batches = [*self._saved, *(one.saved() for one in self._batches)]
    return {OPEN: {'rule': self._schedule.state(), 'batches': batches}}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful; open batches start again with the next iteration.

    A run that had other episodes before has none.
    """
    del arrays
    if OPEN in host:
      self._schedule.restore(host[OPEN]['rule'])
      self._batches, self._saved = [], list(host[OPEN]['batches'])
      self._repeat()

  def _repeat(self):
    """Reads the closings that are repeated, from the next update on."""
    if self._rule.by_arrival:
      closings, update = self.runner.closings, self._schedule.update
      self._schedule.closings = closings.known(self._rule, update)

  def _draw(self, sampler, wrapper, begun):
    """A batch of which all groups count; rewards come later."""
    del sampler, wrapper, begun
    close = self._played()
    places = self._places(close.groups)
    found = {one: self.runner.so_far(one.game) for one, _ in places}
    traj = self._together(places, found)
    examples, indices = self._prompts(places)
    self._use(close)
    return [traj], [], (traj, examples, indices)

  def _filtered(self, draw):
    """A batch of groups that the filter keeps, which have their rewards."""
    close = self._played()
    wanted = len(close.groups)
    if close.kept < wanted:
      self._warnings.warn(
        'dynamic sampling kept %d of %d groups of those that started',
        close.kept,
        wanted,
      )
    places = self._places(close.groups)
    traj = self._together(places, {one: one.judged for one, _ in places})
    self._observe(close.observe)
    done, _ = self._round_of(close.used)
    used = self._places(close.used)
    self._use(close)
    done.shown, done.metrics = self.runner.shown(), self.runner.metrics()
    if self._judges.weights:
      unread = [one.unread[group] for one, group in used]
      done.metrics |= used[0][0].judges.metrics()
      done.metrics[UNREAD] = float(np.mean(unread))
    length_NG = processes.read(traj.length_B).reshape(wanted, -1)
    traj, metrics = self._score(draw.params, traj, draw.method)
    return Collected(traj, metrics, [done], length_NG)

  def _played(self) -> Close:
    """Starts the groups that may, and plays until the batch is complete."""
    draw, schedule = self._drawing, self._schedule
    self.runner.begin()
    used = schedule.started - len(schedule.versions)
    self._update = schedule.update
    self._first = draw.first_serial - used * self._players
    saved, self._saved = self._saved, []
    for one in saved:
      with self.runner.repeating(one['mark']):
        self._start(range(*one['groups']), np.array(one['indices']))
    actions = schedule.updated()
    while True:
      for action in actions:
        if isinstance(action, Close):
          return action
        self._begin(action)
      actions = [a for one in self._batches for a in self._judged(one)]
      if not actions:
        self.runner.go_on([one.game for one in self._batches])

  def _begin(self, action: Begin) -> None:
    """Starts groups, N in a game at most."""
    self._observe(action.observe)
    stop, size = action.groups.stop, self._rule.groups
    for start in range(action.groups.start, stop, size):
      self._start(range(start, min(start + size, stop)), None)

  def _start(self, groups, indices):
    """Starts groups with their weights; indices: None: the selector's."""
    draw, versions = self._drawing, self._schedule.versions
    if indices is None:
      indices = self.selector.select(len(groups))
    mark = self.runner.mark()
    filled = np.resize(indices, self._rule.groups)
    examples, *arrays = self.prompts.batch(filled)
    left = set(groups) & versions.keys()
    age = self._update - versions[min(left)]
    weights, step = draw.weights, draw.policy_version
    if age:
      weights, step = draw.earlier[-age]
    serial = self._first + groups.start * self._players
    traj = self.engine.start(*arrays, serial, step)
    own = self._groups([group - groups.start for group in left])
    game = self.runner.start(
      self.engine, weights, traj, self.key, examples, own
    )
    self._batches.append(
      _Batch(
        groups=groups,
        indices=indices,
        mark=mark,
        step=step,
        left=left,
        examples=examples,
        game=game,
        judges=self._judges.of_evaluation(weights),
        outcomes=[Outcome(None)] * (len(examples) * traj.group_size),
      )
    )

  def _judged(self, one: _Batch) -> list[Begin | Close]:
    """Tells the rule which groups have ended; returns what follows."""
    ended, actions = one.game.ended(), []
    if not ended:
      return actions
    keep_N = np.ones(self._rule.groups, bool)
    if self._drawing.method.group_filter is not None:
      keep_N = self._kept(one, ended)
    for number in sorted({group // self._players for group in ended}):
      serial = one.groups.start + number
      actions += self._schedule.judged(serial, bool(keep_N[number]))
    return actions

  def _kept(self, one: _Batch, ended: list[int]) -> np.ndarray:
    """Returns whether the filter keeps each group, for those that are over.

    ended: groups that are since the last time.
    """
    traj = self.runner.so_far(one.game)
    self._judge_groups(one, traj, ended)
    components = [outcome.components for outcome in one.outcomes]
    # Models score all rows, as their programs have one shape.
    learned = self._learned.score(traj)
    one.rewarded = self._with_rewards(traj, components, learned, one.beats_NGG)
    kept = self.jitted(kept_groups)(self._drawing.method, one.rewarded)
    return processes.read(kept) > 0

  def _judge_groups(self, one, traj, ended):
    """Notes the outcomes of groups, with what judges say of them.

    Each group is judged once, with the weights that have sampled it.
    """
    size, judges = traj.group_size, one.judges
    # Outcomes of episodes are sums of what was said; no text is read.
    every = self.runner.outcomes(traj, one.examples, ())
    said = self.runner.said((), slice(0, len(every)))
    rows = [group * size + n for group in ended for n in range(size)]
    found = judges.add(
      [every[row] for row in rows],
      [one.examples[group] for group in ended],
      [said[row] for row in rows],
      size,
    )
    for row, outcome in zip(rows, found, strict=True):
      one.outcomes[row] = outcome
    if judges.weights:
      one.unread |= dict(zip(ended, judges.unread_N.tolist(), strict=True))
    if judges.beats_NGG is not None:
      if one.beats_NGG is None:
        shape = len(one.examples), size, size
        one.beats_NGG = np.full(shape, 0.5, np.float32)
      one.beats_NGG[ended] = judges.beats_NGG

  def _use(self, close: Close) -> None:
    """Makes the closing what is logged; games without further groups end."""
    if self._rule.by_arrival and close.update not in self._schedule.closings:
      self.runner.closings.add(close, self._rule)
    places = self._places(close.used)
    self.runner.take([(one.game, group) for one, group in places])
    step = self._drawing.policy_version
    behind = [step - one.step for one, _ in places]
    self._used = Used(self._groups(close.used), behind)
    for one in self._batches:
      one.left -= set(close.used)
      if not one.left:
        self.runner.end(one.game)
    self._batches = [one for one in self._batches if one.left]

  def _groups(self, numbers: Sequence[int]) -> list[int]:
    """The groups of prompts, all players of each."""
    P = self._players
    return [P * number + role for number in numbers for role in range(P)]

  def _places(self, serials: Sequence[int]) -> list[Place]:
    return [
      (one, group)
      for serial in serials
      for one in self._batches
      if serial in one.groups
      for group in self._groups([serial - one.groups.start])
    ]

  def _prompts(self, places):
    """(examples, indices) of groups."""
    examples = [one.examples[group] for one, group in places]
    indices = [one.indices[group // self._players] for one, group in places]
    return examples, np.array(indices)

  def _together(self, places, found) -> Trajectories:
    """The groups, in order; found: rows of the whole batches."""
    trajs, size = list(found.values()), self._rollout.num_prompts
    order = {one: number * size for number, one in enumerate(found)}
    chosen = [order[one] + group for one, group in places]
    if chosen == list(range(len(trajs) * size)):
      return trajs[0]
    groups = processes.put(np.array(chosen, np.int32), self.replicated)
    return self.jitted(take_from_rounds)(tuple(trajs), groups)

  def _observe(self, serials: Sequence[int]) -> None:
    """Gives the selector the outcomes of groups that have their rewards."""
    if serials:
      done, components = self._round_of(serials)
      self.selector.observe(done.indices, self._summary(done, components))

  def _round_of(self, serials: Sequence[int]) -> tuple[Round, list]:
    """(groups that have their rewards as a round, components by row)."""
    places = self._places(serials)
    size = self._rollout.group_size
    own = responses.own_rows(len(places), size)
    every = slice(0, self._rule.groups * size)
    hosts = {
      one: responses.fetch_responses(one.judged, self._rule.groups, every)
      for one, _ in places
    }
    rows = [
      (one, group * size + sample)
      for one, group in places
      for sample in range(size)
    ]
    names = next(iter(hosts.values()))
    host = {
      name: np.stack([hosts[one][name][row] for one, row in rows])
      for name in names
    }
    host |= {name: host[name][own] for name in ('response', 'logp')}
    outcomes = [one.outcomes[row] for one, row in rows]
    components = [outcome.components for outcome in outcomes]
    examples, indices = self._prompts(places)
    return Round(
      indices=indices,
      examples=examples,
      texts=responses.Texts(host, own, self.stop),
      errors=[outcome.error for outcome in outcomes],
      reward_NG=total_rewards(components, self._weights, size),
      tokens=int(host['sampled'].sum()),
      responses=host,
    ), components
