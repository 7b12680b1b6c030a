"""The rows of one round of episodes while they are played.

A row that has ended its turn leaves its slot, and takes one again when its own
call has been answered. What it reads and does is that of turn_taking; what
samples is decoding.slot_engine. In a game of several players the rows of those
that wait hold no slot. Rows of an opponent have their weights and caches in a
second table.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import json
from typing import Any, NamedTuple
import zlib

import numpy as np

from rl_jax.decoding.engine import Engine
from rl_jax.decoding.slot_engine import Burst, Result, RunningSlots
from rl_jax.episodes import agreed, partners, questions
from rl_jax.episodes.calls import Answer, Request
from rl_jax.episodes.players import Player
from rl_jax.episodes.questions import Questions
from rl_jax.episodes.resumed import Recorded
from rl_jax.episodes.timeline import Activity
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.runtime import processes
from rl_jax.tasks.environments.base import Ask, Opened
from rl_jax.types import Trajectories


def gathered(values: list[Any]) -> list[Any]:
  """The values of the rows of all processes, in order."""
  return [value for part in processes.gather(values) for value in part]


class Host(NamedTuple):
  """The parts of a runner that all its games share."""

  turns: TurnTaking
  questions: Questions
  activity: Activity


@dataclasses.dataclass
class Row:
  """A row while it is played.

  ids: of the open turn. length: of all tokens. start: where the open turn
  begins, with its observation. marks: of each turn that has ended, where it
  starts and stops, and where what it saw begins. acting: its turn is open.
  ended: the turn has, and is not taken yet. waits: for an answer. asks: the
  question that a partner is to answer. game: of its table. seats: the rows of
  its episode. again: recorded turns, which are taken once more while the open
  one is sampled.
  """

  place: int
  player: Player
  example: Opened
  ids: list[int] = dataclasses.field(default_factory=list)
  length: int = 0
  start: int = 0
  marks: list[list[int]] = dataclasses.field(default_factory=list)
  context: int = 0
  finished: bool = False
  acting: bool = False
  ended: bool = False
  waits: bool = False
  asks: Ask | None = None
  over: bool = False
  game: 'Game' = dataclasses.field(init=False)
  seats: list['Row'] = dataclasses.field(default_factory=list)
  again: list[tuple[np.ndarray, np.ndarray]] = dataclasses.field(
    default_factory=list
  )

  @property
  def turns(self) -> int:
    """The turns that have ended."""
    return len(self.marks)


class Round(NamedTuple):
  """The number of a round, and what its rows began with."""

  number: int
  engine: Engine
  traj: Trajectories
  examples: Sequence[Opened]
  recorded: Recorded | None = None


def go_inside(rows: Iterable[Row], recorded: Recorded) -> None:
  """Puts rows into their open turns; those that take no part are over."""
  starts_B, given_B = recorded.begun_B, recorded.given_B
  length_B = recorded.length_B
  for row in rows:
    place = row.place
    row.marks = [[*span, 0] for span in recorded.spans(place)]
    row.acting = bool(recorded.live_B[place])
    row.over = not row.acting
    row.player.episode.cut = row.over
    if row.acting:
      row.start, row.length = int(starts_B[place]), int(length_B[place])
      ids_T = recorded.response_BT[place]
      row.ids = ids_T[given_B[place] : row.length].tolist()
      row.again = recorded.turns(place)


class Game:
  """The rows of one round in a table, and where each of them is.

  rows: of this process. played: the groups that are. first: of the rows that
  these play against, an opponent's; it has the calls of both. None: itself.
  """

  def __init__(
    self,
    host: Host,
    slots: RunningSlots,
    rows: list[Row],
    round_: Round,
    played: Collection[int],
    first: 'Game | None' = None,
  ):
    self._turns, self._questions, self._activity = host
    self.first = self if first is None else first
    self.opponent: Game | None = None
    if first is not None:
      first.opponent = self
    self.slots, self.round = slots, round_
    self.rows = {row.place: row for row in rows}
    self._is_one = processes.count() == 1  # else places follow `agreed`
    self._submit: Callable[[Request], None]
    # Rows of this process: that are not over, and that wait for an answer.
    self.live_here = sum(not row.over for row in rows)
    self.waits = 0
    for row in rows:
      row.game = self
      self._first_of(row).seats.append(row)
    for row in rows:
      row.seats = self._first_of(row).seats
    size = round_.traj.group_size
    over_B = np.repeat([group not in played for group in self.groups], size)
    if round_.recorded is not None:
      over_B |= ~round_.recorded.live_B
    self._left = (~over_B).reshape(-1, size).sum(axis=1).tolist()
    self.live = sum(self._left)  # rows that are not over, of all processes
    self.agreed = agreed.Agreed(over_B)
    self._ended: list[int] = []  # groups, since `ended`
    self._going: set[int] = set()  # rows that can sample, and are in no burst
    # Not yet fed, see RunningSlots.feed.
    self._said: dict[int, tuple[list[int], *tuple[bool, ...]]] = {}
    # Of each burst that may run the observations that were fed before it; the
    # first one draws first tokens.
    self._flying: collections.deque[int] = collections.deque([0])
    self._observations = 0  # that were fed since the newest burst

  @property
  def tables(self) -> list['Game']:
    """The game, and that of its opponent."""
    return [self] if self.opponent is None else [self, self.opponent]

  @property
  def groups(self) -> range:
    """The numbers of the groups."""
    return range(len(self.round.examples))

  def places(self, group: int) -> range:
    """The rows of a group."""
    size = self.round.traj.group_size
    return range(group * size, (group + 1) * size)

  def _first_of(self, row):
    """The row of the episode that it is named after."""
    return self.first.rows[row.player.episode.key[1]]

  def ended(self) -> list[int]:
    """The groups that have come to their end since the last time."""
    found, self._ended = sorted(self._ended), []
    return found

  @property
  def over(self) -> bool:
    """Returns whether all rows are over."""
    return not self.live

  def begin(self, calls: Any) -> None:
    """Resets all episodes; calls: the queue.

    Recorded rows are fed their tokens and sample, while their turns before are
    taken again.
    """
    self._submit = calls.submit
    for one in self.tables:
      for place in np.flatnonzero(~one.agreed.live_B).tolist():
        one.slots.places.ends(place)  # of a row that is not played
    for row in [row for one in self.tables for row in one.rows.values()]:
      if self.round.recorded is not None and not row.over:
        self._said[row.place] = [], False, True
      failed = row.player.episode.failure is not None
      if row.acting and not failed:
        self._call(row)
      elif failed and not row.over and not any(x.acting for x in row.seats):
        self._end(row)

  def advance(self, steps: int) -> list[Burst]:
    """Feeds what was said and starts bursts, which `take` is to be given.

    A second one starts while the first one may run if other rows fill it.
    """
    self.feed()
    started = []
    widest, ready = self.slots.widest, self._housed(self._going)
    while ready and (
      not self._flying or (len(self._flying) < 2 and len(ready) >= widest)
    ):
      self._activity.works()
      burst = self.slots.sample(ready, steps)
      self._going -= {*burst.rows}
      ready = [row for row in ready if row in self._going]
      self._flying.append(self._observations)
      self._observations = 0
      started.append(burst)
    return started

  def housed(self) -> list[int]:
    """Gives places to rows of all processes; those that are to be sampled.

    All processes call it together, so that they move the same rows.
    """
    return self.slots.house(self.agreed.ready)

  def join(self, steps: int) -> list[Burst]:
    """Starts the calls of a cycle, which are the same in all processes.

    So there is one burst at a time, even if no row of this process is in it.
    """
    if self._flying:
      return []
    self._activity.works()
    places = self.slots.places
    here_B = np.array([row in places for row in range(len(self.agreed.said_B))])
    calls = max(1, self.slots.calls(self.agreed.said_B & here_B))
    said, going = self._called()
    said = {row: one for row, one in said.items() if row in places}
    fed = said.keys() - {*self.slots.feed(said, calls)}
    self._going |= fed & self.rows.keys()
    self._said = {row: x for row, x in self._said.items() if row not in fed}
    going = sorted(row for row in going | fed if row in places)
    burst = self.slots.sample(going, steps, self.agreed.live_B & here_B)
    self._going -= {*burst.rows}
    self._flying.append(len(fed))
    return [burst]

  def _called(self):
    """(what is to be fed by row, rows that can sample) that calls are given.

    Where a row is on devices of several processes, each needs all of them.
    """
    said, going = self._said, self._going
    if not self.slots.spread:
      return said, going
    parts = processes.gather(
      [[[row, *one] for row, one in said.items()], sorted(going)]
    )
    said = {row: tuple(one) for rows, _ in parts for row, *one in rows}
    return said, {row for _, rows in parts for row in rows}

  def exchanged(self) -> Any:
    """The states of the rows of all processes, to be read for `learn`."""
    state_B = np.zeros(len(self.agreed.state_B), np.int32)
    for place, row in self.rows.items():
      state_B[place] = self._state(row)
    if self.slots.spread:
      own = [int(state_B[place]) for place in self.rows]
      return np.array(gathered(own), np.int32)
    return self.slots.exchanged(state_B)

  def _state(self, row):
    if row.over:
      return agreed.OVER
    if row.place in self._said:
      return agreed.SAID
    if row.acting:
      return agreed.DRAWS
    if row.asks is not None:
      return agreed.ASKS + self._questions.code(row.asks)
    return agreed.WAITS

  def learn(self, state_B: np.ndarray) -> None:
    """Takes what all processes have exchanged."""
    self._note_over(self.agreed.learn(state_B, self.slots.places))

  def read(self, burst: Burst) -> tuple[dict[int, Result], dict[str, int]]:
    """Waits for the oldest burst; (results by row, numbers for a trace)."""
    found = {x: one for x, one in burst.read().items() if x in self.rows}
    return found, {
      'round': self.round.number,
      'rows': len(found),
      'steps': max((len(one.ids) for one in found.values()), default=0),
      'observations': self._flying.popleft(),
    }

  def take(self, found: Mapping[int, Result]) -> None:
    """Notes new tokens of rows; those whose turns have ended act."""
    for place, result in found.items():
      if self.rows[place].acting:
        self._take(self.rows[place], result)

  def feed(self) -> None:
    """Feeds what was said to rows that have a place; they can sample then."""
    ready = self._housed(self._said)
    if not ready:
      return
    self._activity.works()
    self.slots.feed({row: self._said.pop(row) for row in ready})
    self._observations += len(ready)
    self._going |= {*ready}

  def _housed(self, rows: Collection[int]) -> list[int]:
    """Returns the rows of these that have a place in the cache, in order."""
    return self.slots.house(sorted(rows)) if rows else []

  def hear(self, answer: Answer) -> None:
    """An answer has come."""
    seats = self.rows[answer.request.sample].seats
    row = next(one for one in seats if one.waits)
    row.waits = False
    self.waits -= 1
    row.player.episode.hear(answer.reply)
    self._go_on(row)

  def told(self, answer: Answer) -> None:
    """A partner has answered."""
    seats = self.rows[answer.request.sample].seats
    row = next(one for one in seats if one.asks)
    row.asks = None
    self._tell(row, answer)

  def _tell(self, row, answer):
    episode = row.player.episode
    partners.tell(episode, *questions.text_of(answer))
    if episode.over():  # the answer is wrong
      self._go_on(row)
    else:
      self._call(row)

  def _go_on(self, row):
    """An episode continues: with a question, with somebody's turn, or never."""
    episode = row.player.episode
    question = episode.asks()
    if question is not None:
      request = questions.request_of(self.round.number, episode, question)
      answer = self._questions.ask(request)
      if answer is None:
        row.asks = question
      else:
        self._tell(row, answer)
    elif row.acting or row.ended:  # its turn was open before
      self._started(row)
    else:
      acting = next((x for x in row.seats if x.player.acts()), row)
      acting.game._continue(acting)

  def _started(self, row):
    """An episode has started, or a recorded turn of it was answered."""
    turns, player = self._turns, row.player
    if not player.episode.acted:
      turns.check_begun(player, [(x.player, x.example) for x in row.seats])
    else:
      turns.compare(player, row.again.pop(0)[1])
    if row.again and player.acts():
      turns.act_again(player, row.again[0][0])
      self._call(row)
    elif row.ended:
      self._act(row)

  def _take(self, row: Row, result: Result) -> None:
    row.ids += result.ids
    row.length += len(result.ids)
    if result.ended:
      self._end_turn(row, result.finished)
    else:
      self._going.add(row.place)

  def _end_turn(self, row, finished):
    row.marks.append([row.start, row.length, row.context])
    row.finished, row.acting, row.ended = finished, False, True
    if self._is_one:
      self.slots.places.waits(row.place)
    if not (row.waits or row.asks):  # for what comes before its first turn
      self._act(row)

  def _act(self, row):
    row.ended = False
    if self._turns.act(row.player, row.ids):
      self.first._call(row)
    else:
      self._end(row)

  def _end(self, row):
    """The rows of an episode are over."""
    for one in row.seats:
      one.over, game = True, one.game
      game.live_here -= 1
      if self._is_one:  # else all processes are to learn it at once
        game.slots.places.ends(one.place)
        game._note_over([one.place])

  def _note_over(self, places):
    """Rows are over, and with its last row a group."""
    for place in places:
      self.live -= 1
      group = place // self.round.traj.group_size
      self._left[group] -= 1
      if not self._left[group]:
        self._ended.append(group)

  def _call(self, row):
    request = row.player.episode.request()
    asked = [request.example.id, request.seed, *request.actions]
    row.waits = True
    self.waits += 1
    self._submit(
      Request(
        serial=self.round.number,
        sample=row.player.episode.key[1],
        turn=len(request.actions),
        kind='step' if request.actions else 'reset',
        payload=request,
        crc=zlib.crc32(json.dumps(asked).encode()),
      )
    )

  def _continue(self, row):
    """A row reads its observation; without room for a turn it is over."""
    room = self.round.traj.response_BT.shape[1] - row.length
    ids, forgets = self._turns.next_ids(
      row.player, row.turns, row.finished, room
    )
    if ids is None:
      self._end(row)
      return
    row.start = row.length
    row.context = row.length if forgets else row.context
    row.length += len(ids)
    row.ids, row.acting = [], True
    self._said[row.place] = ids, forgets
    if not self._is_one:
      return
    self.slots.places.wakes(row.place)
    if len(self._said) >= self.slots.fed:  # more would need another call
      self.feed()
