"""The rule of batches: which groups start with which weights, and train when.

A state machine without time, so that a run is a function of its configuration
and of what is judged. Groups have serials in the order in which the selector
chose them; N of them are an update, and K is rollout.staleness. Weights v are
those after v updates, and closing v completes the batch of update v.

When weights v exist, groups start up to the last one that closing v - 1 has
used + (K + 1) N, and all of them are sampled by weights v to their end.

  fixed    update v takes the first N groups in the order of their serials. If
           no group is filtered, update g // N trains group g, which weights
           max(0, g // N - K) sample: the schedule of rollouts.lagged.
  arrival  update v takes the N groups that are complete first, but waits for
           each one that started K updates ago. Nothing is dropped. Besides the
           groups used so far at most 2 N start. What closes depends on time, so
           closings are journaled, and a run that continues repeats them.

With K = 0 both wait for all groups that have started, as rounds of dynamic
sampling do (rollouts.collect), and what exceeds N is discarded.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.episodes.turns import FIXED, ORDERS


@dataclasses.dataclass(frozen=True)
class Begin:
  """Groups may start; weights `version` sample them to their end.

  observe: groups whose outcomes the selector gets before it chooses these.
  """

  version: int
  groups: range
  observe: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Close:
  """The batch of `update` is complete.

  groups: its N groups. kept: how many of them count; the others, which a filter
  has dropped, only fill it. used: all groups that no later closing reads.
  observe: groups whose outcomes the selector gets before it chooses again.
  """

  update: int
  groups: tuple[int, ...]
  kept: int
  used: tuple[int, ...]
  observe: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Rule:
  """The settings of a Schedule.

  groups: N. staleness: K. max_rounds: how often groups start for one closing of
  which a filter drops too many. round_groups: that start at a time if K = 0;
  None: N.
  """

  groups: int = ranged(1, 1)
  staleness: int = ranged(0, 0)
  order: str = chosen(FIXED, ORDERS)
  max_rounds: int = ranged(1, 1)
  round_groups: int | None = ranged(None, 1)

  def __post_init__(self):
    size = self.round_groups
    if size is not None and (self.staleness or size < self.groups):
      raise ValueError(
        f'Rule.round_groups = {size}: expected at least groups = '
        f'{self.groups}, and staleness = 0, which is {self.staleness}'
      )

  @property
  def by_arrival(self) -> bool:
    """Returns whether time may decide; with K = 0 it never does."""
    return self.order == 'arrival' and self.staleness > 0

  @property
  def round(self) -> int:
    """The groups that start together for a batch that is short."""
    return self.round_groups or self.groups

  @property
  def ahead(self) -> int:
    """The groups that start at most besides those that were used."""
    if self.by_arrival:
      return 2 * self.groups
    return self.staleness * self.groups + self.round


class Schedule:
  """The state of the rule: `updated` and `judged` give what may happen next.

  closings: by update, the journaled (groups, dropped groups) of closings that
  are repeated; of order='arrival' only.
  """

  def __init__(
    self,
    rule: Rule,
    closings: Mapping[int, tuple[Iterable[int], Iterable[int]]] | None = None,
  ):
    self._rule, self.closings = rule, dict(closings or {})
    self.update = 0  # whose batch closes next
    self.started = 0  # groups
    self._open: dict[int, int] = {}  # versions of groups not used, by serial
    self._judged: dict[int, bool] = {}  # whether kept, in the order of arrival
    self._observed: set[int] = set()  # of the open ones, by the selector
    self._rounds = 0
    self._waits = True  # for the weights of `update`

  @property
  def versions(self) -> dict[int, int]:
    """The weights of each group that has started and was not used."""
    return dict(self._open)

  def updated(self) -> list[Begin | Close]:
    """Weights `update` exist: first at the start, then after each closing."""
    if not self._waits:
      raise ValueError(f'the batch of update {self.update} is not complete')
    self._waits, self._rounds = False, 1
    used = self.started - len(self._open)
    count = used + self._rule.ahead - self.started
    found: list[Begin | Close] = []
    if count > 0:  # a round that was larger than its batch leaves fewer
      found.append(self._begin(count))
    return [*found, *self._decided()]

  def judged(self, serial: int, kept: bool = True) -> list[Begin | Close]:
    """A group is complete; kept: by the filter.

    Raises:
      ValueError: it has not started, or was judged before.
    """
    if serial not in self._open or serial in self._judged:
      raise ValueError(f'group {serial} is not one that waits for its end')
    self._judged[serial] = kept
    return [] if self._waits else self._decided()

  def state(self) -> dict[str, Any]:
    """JSON of what a checkpoint at a closing holds.

    Groups that are judged and not used are judged again from the journal.
    """
    if not self._waits:
      raise ValueError('a checkpoint is between a closing and its weights')
    return {
      'update': self.update,
      'started': self.started,
      'open': sorted(map(list, self._open.items())),
      'observed': sorted(self._observed),
    }

  def restore(self, state: Mapping[str, Any]) -> list[Begin]:
    """Returns the open groups, which start again with their weights."""
    self.update, self.started = state['update'], state['started']
    self._open = {serial: version for serial, version in state['open']}
    self._judged, self._observed = {}, set(state['observed'])
    self._waits = True
    return [
      Begin(version, range(serial, serial + 1))
      for serial, version in sorted(self._open.items())
    ]

  def _begin(self, count):
    groups = range(self.started, self.started + count)
    self.started = groups.stop
    self._open |= dict.fromkeys(groups, self.update)
    return Begin(self.update, groups)

  def _decided(self) -> list[Begin | Close]:
    """A closing, or more groups if all are judged and too few are kept."""
    known = self._rule.by_arrival and self.update in self.closings
    close = self._repeated() if known else self._closing()
    if close is not None:
      return [self._closed(close)]
    if len(self._judged) < len(self._open):
      return []
    if self._rounds < self._rule.max_rounds:
      self._rounds += 1
      return [self._more()]
    if known:
      raise ValueError(
        f'the journaled closing {self.update} has groups that never start: '
        f'{self.closings[self.update]}'
      )
    return [self._closed(self._filled())]

  def _repeated(self):
    """The journaled closing, once its groups are judged."""
    groups, dropped = (tuple(x) for x in self.closings[self.update])
    used = (*groups, *dropped)
    if any(g not in self._judged for g in used):
      return None
    return groups, sum(self._judged[g] for g in groups), used

  def _closing(self):
    """(groups, kept, used) of a batch that is complete; else None."""
    N = self._rule.groups
    if self._rule.by_arrival:
      return self._by_arrival(N)
    if self._rule.staleness == 0:
      kept = sorted(g for g, keep in self._judged.items() if keep)
      if len(self._judged) < len(self._open) or len(kept) < N:
        return None
      return tuple(kept[:N]), N, tuple(sorted(self._open))
    kept = []
    for place, serial in enumerate(sorted(self._open)):
      if serial not in self._judged:
        return None
      if self._judged[serial]:
        kept.append(serial)
      if len(kept) == N:
        return tuple(kept), N, tuple(sorted(self._open)[: place + 1])
    return None

  def _by_arrival(self, N):
    """The first N; those that started K updates ago are among them."""
    kept = [g for g, keep in self._judged.items() if keep]
    oldest = self.update - self._rule.staleness
    due = [g for g, version in self._open.items() if version <= oldest]
    if len(kept) < N or any(g not in self._judged for g in due):
      return None
    first = [g for g in due if self._judged[g]]
    rest = [g for g in kept if g not in first]
    groups = sorted((first + rest)[:N])
    dropped = [g for g, keep in self._judged.items() if not keep]
    return tuple(groups), N, (*groups, *sorted(dropped))

  def _filled(self):
    """A batch that stays short: dropped groups, which weigh nothing, fill it.

    They come last, as in rollouts.collect.
    """
    serials = sorted(self._judged)
    kept = [g for g in serials if self._judged[g]]
    spare = [g for g in serials if not self._judged[g]]
    N = self._rule.groups
    return tuple((kept + spare)[:N]), len(kept), tuple(serials)

  def _closed(self, close):
    groups, kept, used = close
    for serial in used:
      if self.update - self._open[serial] > self._rule.staleness:
        raise RuntimeError(
          f'update {self.update} would train group {serial}, sampled by '
          f'weights {self._open[serial]}: staleness = {self._rule.staleness}'
        )
    observe = self._unobserved(used)
    for serial in used:
      del self._open[serial], self._judged[serial]
      self._observed.discard(serial)
    closed = Close(self.update, groups, kept, used, observe)
    self.update, self._waits = self.update + 1, True
    return closed

  def _more(self):
    """A further round; the selector knows all before it."""
    observe = self._unobserved(self._open)
    self._observed |= set(observe)
    begin = self._begin(self._rule.round)
    return dataclasses.replace(begin, observe=observe)

  def _unobserved(self, serials):
    return tuple(sorted(set(serials) - self._observed))
