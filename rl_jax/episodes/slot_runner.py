"""Episodes that never wait for each other: each continues with its own answer.

Turns are sampled in slots (decoding.slot_engine), and all that environments do
is a call in a queue (calls). A row that has ended its turn leaves its slot, and
takes one again when its own call has been answered. Time decides when a row
continues and nothing else: requests, tokens and records are those of turns in
step (episodes). In a game the rows of the players that wait hold no slot. Rows
of an opponent have their weights and caches in a second table.

While a burst runs the host hears answers and starts to feed them. The next
burst starts before the first one has been read if there are rows for it that
do not wait for its results: those of another game, or more than have slots.

Each of several processes calls for its own rows. All start the same programs,
cycle by cycle (agreed), so that none waits for another one's calls, and what
was answered is exchanged when a batch closes.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import contextlib
import dataclasses
import json
import time
from typing import Any, NamedTuple
import zlib

from absl import logging
import jax
import numpy as np

from rl_jax.decoding.cache_places import HostCache
from rl_jax.decoding.engine import Engine
from rl_jax.decoding.slot_decode import BURST, LONGEST
from rl_jax.decoding.slot_engine import Burst, Result, RunningSlots
from rl_jax.episodes import agreed, partners, questions, resumed, timeline
from rl_jax.episodes.calls import Answer, Request
from rl_jax.episodes.closings import ClosingJournal
from rl_jax.episodes.episodes import EpisodeRunner, gathered, policies_of
from rl_jax.episodes.partners import QUESTIONS
from rl_jax.episodes.players import Player
from rl_jax.episodes.questions import Questions
from rl_jax.episodes.resumed import Recorded
from rl_jax.judging.verifiers import POSITION
from rl_jax.rollouts.responses import own_rows
from rl_jax.runtime import processes
from rl_jax.tasks.environments.base import Ask, Opened
from rl_jax.types import Trajectories

OPEN = 'open_episodes'  # in the JSON object of checkpoints
WORTH_A_LINE = 1.0  # seconds of waiting that the log mentions
ACTION_SHOWN = 80  # characters
GLANCE = 0.001  # seconds of a wait for answers while a burst runs
PAUSE = 0.005  # of a process that knows of nothing to sample anywhere


class SlotRunner(EpisodeRunner):
  """An EpisodeRunner whose rows do not wait for each other.

  Of several processes each plays its own rows; all ask partners together.
  closings: of batches whose groups depend on time. host_tokens: of rows that
  wait without a place in the cache, in the memory of the host.
  """

  def __init__(
    self,
    *args: Any,
    closings: ClosingJournal | None = None,
    host_tokens: int = 0,
    **kwargs: Any,
  ):
    super().__init__(*args, **kwargs)
    self.host_cache = HostCache(host_tokens)
    self.closings = closings or ClosingJournal()
    self._questions = Questions(self._partners, self._journal)
    self._games: dict[int, Game] = {}  # that are played, by number
    # Bursts that may run, in the order in which they were started.
    self._flying: collections.deque[tuple[Game, Burst]] = collections.deque()
    self._longest = Wait()  # for a call, since the last batch
    self._pause: float | None = None  # since when nothing could be sampled
    self._marks: list[list[list[int]]] = []  # of `_records`, see Row
    self._here: dict[int, Player] = {}  # of `_records`, by place
    self._owners: list[int] = []  # of `_records`: the process

  def play(
    self,
    engine: Engine,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    examples: Sequence[Opened],
    recorded: Recorded | None = None,
  ) -> Trajectories:
    """See EpisodeRunner.play.

    Raises:
      RuntimeError: an episode begins in another way than its example.
    """
    return self.finish(
      self.start(engine, params, traj, key, examples, recorded=recorded)
    )

  def start(
    self,
    engine: Engine,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    examples: Sequence[Opened],
    groups: Collection[int] | None = None,
    recorded: Recorded | None = None,
  ) -> 'Game':
    """Episodes that are played until they are over, with these weights.

    params must outlive updates: the device may read them to the end. groups:
    that are played, None: all; the rows of others only fill the shape.
    recorded: see EpisodeRunner.play.
    """
    assert engine.slots is not None
    own = own_rows(len(examples), traj.group_size)
    policies = policies_of(params)
    seats = self._seated(examples, traj.group_size, own, len(policies))
    number = self._journal.stream(self._rounds)
    round_ = Round(number, engine, traj, examples, recorded)
    played = range(len(examples)) if groups is None else groups
    game = None
    for weights, players in zip(policies, seats, strict=True):
      rows = self._rows_of(players, own, round_, played)
      slots = self._begun_slots(weights, key, rows, round_, game is not None)
      game = Game(self, slots, rows, round_, played, game)
      self._flying.append((game, slots.first))
    assert game is not None
    game = game.first
    self._games[number] = game
    game.begin(self._journal)
    return game

  def _rows_of(self, players, own, round_, played):
    """The rows of a table before their first turns."""
    rows = []
    for place, player in zip(range(own.start, own.stop), players, strict=True):
      group = place // round_.traj.group_size
      example = round_.examples[group]
      row = Row(place, player, example, over=group not in played)
      row.acting = self._begins(row)
      rows.append(row)
    if round_.recorded is not None:
      _go_inside(rows, round_.recorded)
    return rows

  def _begun_slots(self, params, key, rows, round_, opponent):
    """Slots of a table, whose rows have been given their first tokens."""
    engine, traj, acting_B = round_.engine, round_.traj, None
    if round_.recorded is not None:  # all of them have tokens
      acting_B = np.zeros(len(traj.length_B), bool)
    elif self._players > 1:
      acting_B = np.array(gathered([row.acting for row in rows]))
    if opponent:
      traj = engine.opponents(traj)
    most = self.most_observed(traj.response_BT.shape[1])
    engine.slots.settle(params, traj, key, most, acting_B)
    self.activity.works()
    return RunningSlots(
      engine.slots, params, traj, key, most, acting_B, self.host_cache
    )

  def begin(self) -> None:
    """Begins a batch: what metrics count is 0."""
    self.activity.begin()
    self._partners.begin()

  def finish(self, game: 'Game', beside: Sequence['Game'] = ()) -> Trajectories:
    """The rows of a game at its end; others continue beside it meanwhile."""
    self.begin()
    while not game.over:
      self.go_on((game, *beside))
    self.take([(game, group) for group in game.groups])
    self.end(game)
    return self._trajectories(game)

  def go_on(self, games: Sequence['Game']) -> None:
    """Hears what has been answered, starts bursts, and takes the oldest one.

    Without a row that can sample it asks partners, or waits for an answer. Of
    several processes all call it together, with the same games.
    """
    if processes.count() > 1:
      self._cycle(games)
      return
    heard = self._hear_all()
    if self._questions.full:
      self._ask_partners()
    # Nobody can come in before a turn ends: then bursts end with the turn.
    steps = BURST if self.waits else LONGEST
    for one in _tables(games):
      self._flying += [(one, burst) for burst in one.advance(steps)]
    if self._flying:
      self._take_burst()
    elif self._questions:
      self._ask_partners()
    elif not heard:
      self._wait()

  def _cycle(self, games):
    """The programs that all processes start, whoever has answers for them."""
    self._hear_all()
    tables = _tables(games)
    busy = [one for one in tables if one.housed()]
    codes = [code for one in tables for code in one.agreed.codes]
    if codes and (not busy or self._partners.fill(codes)):
      self._ask_partners()
    calm = all(one.agreed.calm for one in tables)
    steps = LONGEST if calm and not self.waits else BURST
    for one in busy:
      self._flying += [(one, burst) for burst in one.join(steps)]
    if self._flying:
      self._pause = None
    else:
      self._wait(PAUSE)
    shared = [one.exchanged() for one in tables]
    while self._flying:
      self._take_burst()
    for one, states in zip(tables, shared, strict=True):
      one.learn(processes.read(states))

  def _take_burst(self):
    """Takes what the oldest burst has drawn, and hears what is answered."""
    game, burst = self._flying[0]
    while self.waits and not burst.ended:
      self._hear(self._journal.poll(GLANCE))
    tables = _tables(self._games.values())
    if processes.count() == 1:
      for one in tables:
        one.feed()  # on the device, while the host takes the burst
    self._flying.popleft()
    found, shown = game.read(burst)
    name = 'first tokens' if burst is game.slots.first else 'burst'
    self.activity.worked(name, self._rests, **shown)
    if name == 'burst':
      live = sum(one.live_here for one in tables)
      slots = len(burst.rows) // processes.count()
      self.activity.burst(len(found), slots, live, self.waits)
      places = [one.slots.places for one in tables]
      if any(one.limited for one in places):
        tokens = sum(one.used * one.tokens for one in places)
        self.activity.cached(tokens, self.host_cache.used)
    game.take({row: one for row, one in found.items() if not one.ended})
    ended = [row for row, one in found.items() if one.ended]
    most = game.slots.fed
    for start in range(0, len(ended), most):
      # The first ones are fed while the host works on the others.
      if start:
        self._hear_all()
      game.take({row: found[row] for row in ended[start : start + most]})

  def _ask_partners(self):
    """Asks the models what waits for them."""
    self.activity.works()
    answers = self._questions.answers()
    self.activity.worked('partners', self._rests, questions=len(answers))
    self.activity.answered(answers)
    for answer in answers:
      self._games[answer.request.serial].told(answer)

  def _wait(self, limit: float | None = None):
    """Hears the next answer, as there is nothing else to do; limit: seconds."""
    if self._pause is None:
      self._pause = time.perf_counter()
    with self.activity.span(timeline.WAITING, 'waits for an answer'):
      answers = self._journal.poll(limit)
    assert answers or limit is not None, 'a row waits for nothing'
    if not answers:
      return
    waited = Wait(time.perf_counter() - self._pause, answers[-1].request)
    self._longest = max(self._longest, waited, key=lambda one: one.seconds)
    self._pause = None
    self._hear(answers)

  @property
  def _rests(self):
    """Returns whether all calls of the devices have ended."""
    return all(one.slots.idle for one in _tables(self._games.values()))

  @property
  def waits(self) -> int:
    """The rows of all games that wait for an answer."""
    return sum(game.waits for game in self._games.values())

  def so_far(self, game: 'Game') -> Trajectories:
    """The rows of a game, of which some may not be over.

    Until `take` the records, and so `outcomes`, are of these rows.
    """
    self._look_at([(game, group) for group in game.groups])
    return self._trajectories(game)

  def take(self, groups: Sequence[tuple['Game', int]]) -> None:
    """Makes these groups, which are over, those of records and metrics.

    groups: (game, number in it), in the order of the batch.

    Raises:
      RuntimeError: too many of the episodes have failed.
    """
    self._hear_all()  # what others have called runs during the update
    self._look_at(groups)
    self._seconds = self.activity.metrics()['rollout/waited_for']
    if self._longest.seconds >= WORTH_A_LINE:
      logging.info(
        'episodes waited %.1f s for calls, at most %.1f s without a pause: %s',
        self._seconds,
        self._longest.seconds,
        self.named(self._longest.request),
      )
    self._longest = Wait()
    self._check_share()

  def end(self, game: 'Game') -> None:
    """Ends the episodes of a game; its rows may still be read."""
    del self._games[game.round.number]
    # If no row had anything to sample, first tokens were never read.
    self._flying = collections.deque(
      one for one in self._flying if one[0].first is not game
    )
    self._questions.drop(game.round.number)
    self._journal.over(game.round.number)

  def _look_at(self, groups):
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

  def _trajectories(self, game):
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

  def shown(self) -> Callable[[int], dict[str, Any]]:
    """See EpisodeRunner; rows of a batch may be of several games."""
    here = self._here

    def of_row(row):
      return here[row].shown() if row in here else {}

    return of_row

  def _process_of(self, row: int) -> int:
    return self._owners[row]

  def close(self) -> None:
    """See Journaled; closes the file of closings, too."""
    super().close()
    self.closings.close()

  def mark(self) -> int:
    """The number of the next round of calls."""
    return self._journal.mark()

  def repeating(self, mark: int) -> contextlib.AbstractContextManager[None]:
    """Rounds that start inside have the numbers from `mark` on, once more."""
    return self._journal.repeating(mark)

  def forget(self, host: Mapping[str, Any]) -> None:
    """See Journaled; open episodes need what they have been answered."""
    marks = [one['mark'] for one in host.get(OPEN, {}).get('batches', ())]
    super().forget({**host, **{POSITION: min([host.get(POSITION, 0), *marks])}})

  def _hear_all(self):
    """Hears what has come; returns whether there was something."""
    heard = False
    while answers := self._journal.poll(0.0):
      heard = self._hear(answers) or heard
    return heard

  def _hear(self, answers):
    """Hands answers to their games; returns whether there was one."""
    own = [a for a in answers if a.request.serial in self._games]
    for answer in own:
      self._games[answer.request.serial].hear(answer)
    if not self._flying and self._rests:
      self.activity.worked('feed', True)
    return bool(own)

  def most_observed(self, max_tokens: int) -> int:
    """The tokens of an observation at most."""
    return max_tokens if self._task.traits.rewrites else self._format.most

  def metrics(self) -> dict[str, float]:
    """See EpisodeRunner.metrics; with those of timeline.Activity.

    Each question of an episode counts, as what is asked together depends on
    time.
    """
    found = {**super().metrics(), **self.activity.metrics()}
    if QUESTIONS in found:
      found[QUESTIONS] = float(sum(one['questions'] for one in self._records))
    return found

  def _begins(self, row):
    """Returns whether a row has the first turn of its episode."""
    if self._players == 1:
      return not row.over
    example = row.example
    first = example.failure is None and example.acting == example.role
    return first and not row.over

  def acts(self, row: 'Row') -> bool:
    """Takes the turn of a row; returns whether its environment is called."""
    if not row.player.acts():
      return False
    row.player.act(self._stop.text(np.array(row.ids, np.int32)), row.ids)
    return True

  def named(self, request: Request | None) -> str:
    """A call as the log names it: kind, prompt, tools and action."""
    if request is None:
      return 'no call'
    payload = request.payload
    text = f'{request.kind} of the episode of example {payload.example.id}'
    if not payload.actions:
      return text
    tools = ', '.join(self.tools_of(request))
    text += f', turn {request.turn}' + f', tools {tools}' * bool(tools)
    return f'{text}, action {payload.actions[-1][:ACTION_SHOWN]!r}'

  def code_of(self, question: Ask) -> int:
    """See Partners.code."""
    return self._partners.code(question)

  def asks(self, request: Request) -> Answer | None:
    """The answer to a question, None: `Game.told` hears it later."""
    return self._questions.ask(request)

  def check_begun(self, row: 'Row') -> None:
    """Raises RuntimeError if an episode begins in another way than its
    examples.
    """
    for one in row.seats:
      self._check_start(one.player, one.example)
    episode = row.player.episode
    if not episode.over() and not row.player.acts():
      acting = episode.said[-1]['acting']
      raise RuntimeError(
        f'{self._named(episode.example)} begins in two ways: with a turn of '
        f'player {acting} and of player {row.player.role}; `reset` must depend '
        'on nothing but its seed'
      )

  def act_again(self, player: Player, ids: np.ndarray) -> None:
    """Takes a recorded turn."""
    player.act(self._stop.text(ids))

  def compare(self, player: Player, ids: np.ndarray) -> None:
    """Fails an episode that did not say these ids."""
    resumed.compare(player, ids, self._format)

  def next_ids(self, row: 'Row', room: int) -> tuple[list[int] | None, bool]:
    """(ids before the next turn of a row, None: it has none; forgets)."""
    left = row.turns < self._turns.max_turns
    return self._next_ids(row.player, row.finished, room if left else 0)


class Wait(NamedTuple):
  """Seconds without anything to sample, and the call that ended them."""

  seconds: float = 0.0
  request: Request | None = None


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


def _go_inside(rows: Iterable[Row], recorded: Recorded) -> None:
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
    runner: SlotRunner,
    slots: RunningSlots,
    rows: list[Row],
    round_: Round,
    played: Collection[int],
    first: 'Game | None' = None,
  ):
    self._runner, self._activity = runner, runner.activity
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
      return agreed.ASKS + self._runner.code_of(row.asks)
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
      answer = self._runner.asks(request)
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
    runner, player = self._runner, row.player
    if not player.episode.acted:
      runner.check_begun(row)
    else:
      runner.compare(player, row.again.pop(0)[1])
    if row.again and player.acts():
      runner.act_again(player, row.again[0][0])
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
    if self._runner.acts(row):
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
    ids, forgets = self._runner.next_ids(row, room)
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


def _tables(games: Iterable[Game]) -> list[Game]:
  """The tables of games."""
  return [table for game in games for table in game.tables]
