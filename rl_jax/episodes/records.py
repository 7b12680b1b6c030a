"""The record of a batch of episodes that were played.

Ids in it are those that were sampled or put there; nothing is encoded twice.
What a process knows of its own rows is exchanged when a batch closes.
"""

from collections.abc import Callable, Mapping, Sequence
import socket
from typing import Any

from absl import logging
import numpy as np

from rl_jax.episodes.game import Game
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.players import Player, episode_metrics
from rl_jax.episodes.turn_arrays import turn_arrays
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.judging.verifiers import Journaled
from rl_jax.rollouts.responses import Texts
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base
from rl_jax.types import Trajectories
from rl_jax.verification.pool import Outcome

Places = Sequence[tuple[Game, int]]  # groups: (game, number in it)


class UnweightedRewardWarning:
  """Looks at the components of the first rewards."""

  def __init__(self):
    self._looked = False

  def look(
    self,
    records: Sequence[Mapping[str, Any]],
    weights: Sequence[Mapping[str, float]],
  ) -> None:
    """Warns, once, if no component of the rewards has a weight."""
    if self._looked:
      return
    turns = [rewards for record in records for rewards in record['rewards']]
    given = {name for rewards in turns for name in rewards}
    counted = {name for one in weights for name in one}
    self._looked = bool(given)
    if given and not given & counted:
      logging.warning(
        'no episode has a component of task.reward_weights, %s: their rewards '
        'are 0; they have %s',
        sorted(counted),
        sorted(given),
      )


class EpisodeRecords(Journaled):
  """Judges the rows of a batch; see `verifiers` for what a run asks.

  journal: of a SessionPool. judged: whether judges read episodes, of which all
  processes then know the texts.
  """

  def __init__(self, turns: TurnTaking, journal: NumberedCalls, judged: bool):
    super().__init__(journal)
    self.turns, self._task, self._judged = turns, turns.task, judged
    self._rows: list[Player] = []  # of this process
    self._here: dict[int, Player] = {}  # the same, by place
    # Of all rows: the records, the marks (see game.Row) and the processes.
    self._records: list[dict[str, Any]] = []
    self._marks: list[list[list[int]]] = []
    self._owners: list[int] = []
    self._live_B: np.ndarray | None = None  # that take part; None: all
    self._counted = UnweightedRewardWarning()

  def _look_at(self, groups: Places) -> None:
    """Makes groups those of records; all processes then know their rows."""
    places = [
      (game, row) for game, group in groups for row in game.places(group)
    ]
    own = {
      n: game.rows[x] for n, (game, x) in enumerate(places) if x in game.rows
    }
    mine = [[n, self._record(x.player), x.marks] for n, x in own.items()]
    parts = processes.gather(mine)
    found = {n: one for part in parts for n, *one in part}
    self._records = [found[n][0] for n in range(len(places))]
    self._marks = [found[n][1] for n in range(len(places))]
    self._owners = [0] * len(places)
    for process, part in enumerate(parts):
      for n, *_ in part:
        self._owners[n] = process
    self._rows = [row.player for row in own.values()]
    self._here = dict(zip(own, self._rows, strict=True))
    recorded = groups[0][0].round.recorded  # then there is no other game
    self._live_B = None if recorded is None else recorded.live_B

  def _record(self, player):
    """The record of a row; judges read what was exchanged, too."""
    more: dict[str, Any] = {}
    if self._judged:
      more['exchanged'] = player.exchanged()
    episode = player.episode
    if episode.failure is not None and episode.actions:
      last = self._task.tools_in(episode.example, episode.actions[-1])
      more['tools'] = list(last)
    return player.record() | more

  def outcomes(
    self,
    traj: Trajectories,
    examples: Sequence[Any],
    texts: Texts,
    due_B: np.ndarray | None = None,
  ) -> list[Outcome]:
    """The sums of the rewards of the rows that were played last.

    Rows that take no part have no components, and no error.
    """
    del texts, due_B
    self._counted.look(self._records, list(map(self._weights, examples)))
    found = []
    for row in range(len(examples) * traj.group_size):
      record = self._records[row]
      if not self._takes_part(row):
        found.append(Outcome(None))
        continue
      if record['failure'] is not None:
        found.append(Outcome(None, *record['failure']))
        continue
      weights = self._weights(examples[row // traj.group_size])
      names = {base.OUTCOME, *weights}
      total = dict.fromkeys(sorted(names), 0.0)
      for rewards in record['rewards']:
        for name, value in rewards.items():
          total[name] = total.get(name, 0.0) + value
      found.append(Outcome(total, *(record['lost'] or ())))
    return found

  def _check_share(self):
    """Raises RuntimeError if too many rows have failed: nothing will answer.

    Those that could not be repeated, as of a run that continues, do not count.
    """
    rows = list(filter(self._takes_part, range(len(self._records))))
    failures = {row: self._records[row]['failure'] for row in rows}
    counted = {r: x for r, x in failures.items() if x and x[0] != 'mismatch'}
    share = self.turns.settings.failed_share
    if len(counted) <= share * len(rows):
      return
    first, (kind, detail) = next(iter(counted.items()))
    host = processes.gather(socket.gethostname())[self._owners[first]]
    where = f'row {first} on host {host}'
    if tools := self._records[first].get('tools'):
      where += f', tools {", ".join(tools)}'
    raise RuntimeError(
      f'{type(self._task).__name__}: {len(counted)} of {len(rows)} episodes of '
      f'a round have failed, more than verifier.failed_share = {share}; the '
      f'first is {where}, {kind}: {detail}'
    )

  def _takes_part(self, row):
    return self._live_B is None or self._live_B[row]

  def said(self, texts: Texts, own: slice) -> list[list[tuple[str, str]]]:
    """Returns what judges read of own rows: (action, answer) of every turn."""
    del texts
    return [one.get('exchanged', []) for one in self._records[own]]

  def shown(self) -> Callable[[int], dict[str, Any]]:
    """Returns what is logged of a row, {} if another process has played it."""
    here = self._here

    def of_row(row):
      return here[row].shown() if row in here else {}

    return of_row

  def metrics(self) -> dict[str, float]:
    """Metrics over the rows that take part."""
    rows = filter(self._takes_part, range(len(self._records)))
    return episode_metrics([self._records[row] for row in rows])

  def _trajectories(self, game: Game) -> Trajectories:
    """The rows of the game whose groups `_look_at` has seen last."""
    round_ = game.round
    turn_BT = np.full(round_.traj.response_BT.shape, -1, np.int32)
    context_BT = np.zeros_like(turn_BT)
    for row, marks in enumerate(self._marks):
      for turn, (start, stop, context) in enumerate(marks):
        turn_BT[row, start:stop] = turn
        context_BT[row, start:stop] = context
    marks = (turn_BT, context_BT)
    return self._finished(
      round_.engine, round_.traj, game.slots.table, marks, round_.examples
    )

  def _finished(self, engine, traj, table, marks, examples):
    """The record of rows; marks: the turn and the context of each token."""
    turn_BT, context_BT = marks
    finished_B = np.array([r['finished'] for r in self._records])
    turns = turn_arrays(
      self._records, list(map(self._weights, examples)), self.turns.max_turns
    )
    arrays = {
      'finished_B': finished_B,
      'turn_BT': turn_BT.astype(np.int32),
      'turns': turns,
    }
    if self.turns.players > 1:
      role_N = [example.role for example in examples]
      arrays['role_B'] = np.repeat(np.array(role_N, np.int32), traj.group_size)
    if self._task.traits.rewrites:
      arrays['context_BT'] = context_BT.astype(np.int32)
    replicated = mesh_lib.replicated(engine.mesh)
    return engine.finish(traj, table, **processes.put(arrays, replicated))

  def _weights(self, example):
    return self._task.weights_of(example)
