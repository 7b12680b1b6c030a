"""Batches of episodes that start updates before they are trained on.

With K = rollout.staleness the groups of update v + K start when weights v
exist, which sample them to their end, while those of updates v to v + K - 1 are
still played. So more tools have work, and an update waits only for the slowest
of its own groups. What starts and what is trained is the rule of
episodes.schedule in its fixed order; time changes neither.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, ClassVar

import numpy as np

from rl_jax.episodes.schedule import Begin, Close, Rule, Schedule
from rl_jax.episodes.slot_runner import OPEN, Game, SlotRunner
from rl_jax.rollouts.collect import Collector
from rl_jax.rollouts.rounds import Collected, Draw
from rl_jax.runtime.stateful import Stateful


@dataclasses.dataclass
class _Batch:
  """The groups of an update; mark: see SlotRunner.mark, before their calls."""

  groups: range
  indices: np.ndarray
  mark: int
  examples: Sequence[Any]
  game: Game

  def saved(self) -> dict[str, Any]:
    """JSON, from which the batch can be started again."""
    return {
      'groups': [self.groups.start, self.groups.stop],
      'indices': self.indices.tolist(),
      'mark': self.mark,
    }


class SlotCollector(Collector, Stateful):
  """A Collector whose episodes are played across updates."""

  name: ClassVar[str] = 'open episodes'

  def __init__(self, rollout: Any, **parts: Any):
    super().__init__(rollout, **parts)
    assert isinstance(self.runner, SlotRunner)
    self._groups = rollout.num_prompts
    self._schedule = Schedule(
      Rule(groups=self._groups, staleness=rollout.staleness)
    )
    self._batches: list[_Batch] = []  # that are played, the oldest first
    self._saved: list[Mapping[str, Any]] = []  # of a checkpoint, to be started
    self._drawing: Draw | None = None

  def collect(self, draw: Draw) -> Collected:
    """The batch of an iteration, whose first group has the draw's serial.

    The weights that sample are those that now start groups of a later one.
    """
    self._drawing = draw
    return super().collect(draw)

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

  def _draw(self, sampler, wrapper, begun):
    """Starts the groups that may, and plays the oldest batch to its end."""
    del sampler, wrapper, begun
    draw, schedule = self._drawing, self._schedule
    assert draw is not None
    saved, self._saved = self._saved, []
    for one in saved:
      with self.runner.repeating(one['mark']):
        self._start(range(*one['groups']), np.array(one['indices']), draw)
    for action in schedule.updated():
      assert isinstance(action, Begin)
      first, size = action.groups.start, self._groups
      for start in range(first, action.groups.stop, size):
        self._start(range(start, start + size), None, draw)
    batch = self._batches.pop(0)
    beside = [one.game for one in self._batches]
    traj = self.runner.finish(batch.game, beside)
    actions = [a for group in batch.groups for a in schedule.judged(group)]
    (close,) = actions
    assert isinstance(close, Close) and close.groups == tuple(batch.groups)
    return [traj], [], (traj, batch.examples, batch.indices)

  def _start(self, groups, indices, draw):
    """Starts groups with their weights; indices: None: the selector's."""
    if indices is None:
      indices = self.selector.select(len(groups))
    mark = self.runner.mark()
    examples, *arrays = self.prompts.batch(indices)
    update = self._schedule.update
    age = update - self._schedule.versions[groups.start]
    weights, step = draw.weights, draw.policy_version
    if age:
      weights, step = draw.earlier[-age]
    serial = draw.first_serial + groups.start - update * self._groups
    traj = self.engine.start(*arrays, serial, step)
    game = self.runner.start(self.engine, weights, traj, self.key, examples)
    self._batches.append(_Batch(groups, indices, mark, examples, game))
