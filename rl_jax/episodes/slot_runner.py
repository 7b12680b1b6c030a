"""Episodes that never wait for each other: each continues with its own answer.

Turns are sampled in slots (decoding.slot_engine), and all that environments do
is a call in a queue (calls). A row that has ended its turn leaves its slot, and
takes one again when its own call has been answered. Time decides when a row
continues and nothing else: requests, tokens and records are those of turns in
step (episodes).
"""

from collections.abc import Sequence
import dataclasses
import json
from typing import Any
import zlib

import jax
import numpy as np

from rl_jax.decoding.engine import Engine
from rl_jax.decoding.slot_engine import Burst, RunningSlots
from rl_jax.episodes import timeline
from rl_jax.episodes.calls import Answer, Calls, Request
from rl_jax.episodes.episodes import EpisodeRunner
from rl_jax.episodes.players import Player
from rl_jax.episodes.resumed import Recorded
from rl_jax.rollouts.responses import own_rows
from rl_jax.tasks.environments.base import Opened
from rl_jax.types import Trajectories


class SlotRunner(EpisodeRunner):
  """An EpisodeRunner whose rows do not wait for each other.

  For tasks of one player that ask no partners, in one process.
  """

  def __init__(self, *args: Any, **kwargs: Any):
    super().__init__(*args, **kwargs)
    self.activity = timeline.Activity()

  def play(
    self,
    engine: Engine,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    examples: Sequence[Opened],
    recorded: Recorded | None = None,
  ) -> Trajectories:
    """See EpisodeRunner.play; nothing is recorded.

    Raises:
      RuntimeError: an episode begins in another way than its example.
    """
    assert recorded is None and engine.slots is not None
    own = own_rows(len(examples), traj.group_size)
    self._first = own.start
    (players,) = self._seated(examples, traj.group_size, own, 1)
    self._rows = players
    most = self.most_observed(traj.response_BT.shape[1])
    engine.slots.settle(params, traj, key, most)
    self.activity.begin()
    with self.activity.span(timeline.DEVICE, 'begin', rows=len(players)):
      slots = RunningSlots(engine.slots, params, traj, key, most)
    number, calls = self._journal.stream()
    game = Game(self, slots, calls, number)
    rows = [
      Row(n, player, examples[n // traj.group_size])
      for n, player in enumerate(players)
    ]
    game.play(rows, traj.response_BT.shape[1])
    self._seconds = self.activity.metrics()['rollout/waited_for']
    self._records = [self._record(player) for player in players]
    self._live_B = None
    self._check_share()
    return self._finished(
      engine, traj, slots.table, (game.turn_BT, game.context_BT), examples
    )

  def most_observed(self, max_tokens: int) -> int:
    """The tokens of an observation at most."""
    return max_tokens if self._task.traits.rewrites else self._format.most

  def metrics(self) -> dict[str, float]:
    """See EpisodeRunner.metrics; with those of timeline.Activity."""
    return {**super().metrics(), **self.activity.metrics()}

  def acts(self, row: 'Row') -> bool:
    """Takes the turn of a row; returns whether its environment is called."""
    if not row.player.acts():
      return False
    row.player.act(self._stop.text(np.array(row.ids, np.int32)), row.ids)
    return True

  def hears(self, row: 'Row', answer: Answer) -> None:
    """Notes an answer; what the environment asks is answered at once.

    Raises:
      RuntimeError: the episode begins in another way than its example.
    """
    episode = row.player.episode
    episode.hear(answer.reply)
    if episode.asks():
      self._partners.answered([episode])
    if not answer.request.turn:
      self._check_start(row.player, row.example)

  def next_ids(self, row: 'Row', room: int) -> tuple[list[int] | None, bool]:
    """(ids before the next turn of a row, None: it has none; forgets)."""
    left = row.turns < self._turns.max_turns
    return self._next_ids(row.player, row.finished, room if left else 0)


@dataclasses.dataclass
class Row:
  """A row while it is played.

  ids: of the open turn. length: of all tokens. start: where the open turn
  begins, with its observation. ended: the turn has, and is not taken yet.
  waits: for an answer.
  """

  place: int
  player: Player
  example: Opened
  ids: list[int] = dataclasses.field(default_factory=list)
  length: int = 0
  start: int = 0
  turns: int = 0
  context: int = 0
  finished: bool = False
  ended: bool = False
  waits: bool = False
  over: bool = False


class Game:
  """The rows of one round, and where each of them is.

  turn_BT, context_BT: of trajectories, as far as turns have ended.
  """

  def __init__(
    self, runner: SlotRunner, slots: RunningSlots, calls: Calls, number: int
  ):
    self._runner, self._slots = runner, slots
    self._calls, self._number = calls, number
    self._activity = runner.activity
    self._rows: list[Row] = []
    self._going: set[int] = set()  # rows that sample
    self._said: dict[int, tuple[list[int], bool]] = {}  # not yet fed
    self.turn_BT = self.context_BT = np.zeros((0, 0), np.int32)

  def play(self, rows: list[Row], max_tokens: int) -> None:
    """Plays all rows to their ends."""
    self._rows = rows
    self.turn_BT = np.full((len(rows), max_tokens), -1, np.int32)
    self.context_BT = np.zeros_like(self.turn_BT)
    for row in rows:
      if row.player.episode.failure is None:
        self._call(row)
    with self._activity.span(timeline.DEVICE, 'first tokens'):
      self._read(self._slots.first)
    while True:
      while answers := self._calls.poll(0.0):
        self._hear(answers)
      if self._said or self._going:
        self._advance()
        continue
      if not any(row.waits for row in rows):
        return
      with self._activity.span(timeline.WAITING, 'waits for an answer'):
        answers = self._calls.poll(None)
      self._hear(answers)

  def _advance(self):
    """Feeds what was said, and samples a burst."""
    said, self._said = self._said, {}
    self._going |= said.keys()
    rows = sorted(self._going)
    waits = sum(row.waits for row in self._rows)
    live = sum(not row.over for row in self._rows)
    with self._activity.span(
      timeline.DEVICE, 'burst', rows=len(rows), observations=len(said)
    ):
      if said:
        self._slots.feed(said)
      burst = self._slots.sample(rows)
      found = burst.read()
    self._activity.burst(len(found), len(burst.rows), live, waits)
    self._take(found)

  def _read(self, burst: Burst) -> None:
    self._take(burst.read())

  def _take(self, found):
    """The new tokens of rows; those whose turns have ended act."""
    for place, result in found.items():
      row = self._rows[place]
      row.ids += result.ids
      row.length += len(result.ids)
      self._going.add(place)
      if result.ended:
        self._going.remove(place)
        self._end_turn(row, result.finished)

  def _end_turn(self, row, finished):
    tokens = slice(row.start, row.length)
    self.turn_BT[row.place, tokens] = row.turns
    self.context_BT[row.place, tokens] = row.context
    row.turns += 1
    row.finished, row.ended = finished, True
    if not row.waits:  # for its reset
      self._act(row)

  def _act(self, row):
    row.ended = False
    if self._runner.acts(row):
      self._call(row)
    else:
      row.over = True

  def _call(self, row):
    request = row.player.episode.request()
    asked = [request.example.id, request.seed, *request.actions]
    row.waits = True
    self._calls.submit(
      Request(
        serial=self._number,
        sample=row.place,
        turn=len(request.actions),
        kind='step' if request.actions else 'reset',
        payload=request,
        crc=zlib.crc32(json.dumps(asked).encode()),
      )
    )

  def _hear(self, answers):
    self._activity.answered(answers)
    for answer in answers:
      row = self._rows[answer.request.sample]
      row.waits = False
      self._runner.hears(row, answer)
      if answer.request.turn:
        self._continue(row)
      elif row.ended:
        self._act(row)

  def _continue(self, row):
    """A row reads its observation; without room for a turn it is over."""
    room = self.turn_BT.shape[1] - row.length
    ids, forgets = self._runner.next_ids(row, room)
    if ids is None:
      row.over = True
      return
    row.start = row.length
    row.context = row.length if forgets else row.context
    row.length += len(ids)
    row.ids = []
    self._said[row.place] = ids, forgets
