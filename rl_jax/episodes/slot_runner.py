"""Episodes that never wait for each other: each continues with its own answer.

Turns are sampled in slots (decoding.slot_engine), and all that environments do
is a call in a queue (calls). Time decides when a row continues and nothing
else: requests, tokens and records are those of a loop over one row at a time.

While a burst runs the host hears answers and starts to feed them. The next
burst starts before the first one has been read if there are rows for it that
do not wait for its results: those of another game, or more than have slots.

Each of several processes calls for its own rows. All start the same programs,
cycle by cycle (agreed), so that none waits for another one's calls, and what
was answered is exchanged when a batch closes.
"""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
import contextlib
import functools
import time
from typing import Any, NamedTuple

from absl import logging
import jax
import numpy as np

from rl_jax.decoding.cache_places import HostCache
from rl_jax.decoding.engine import Engine
from rl_jax.decoding.slot_decode import BURST, LONGEST
from rl_jax.decoding.slot_engine import Burst, RunningSlots
from rl_jax.episodes import beginnings, timeline
from rl_jax.episodes.calls import Request
from rl_jax.episodes.closings import ClosingJournal
from rl_jax.episodes.game import Game, Host, Round, Row, gathered, go_inside
from rl_jax.episodes.journal import Kept, NumberedCalls
from rl_jax.episodes.partners import NO_PARTNERS, QUESTIONS, Partners
from rl_jax.episodes.questions import Questions
from rl_jax.episodes.records import EpisodeRecords, Places
from rl_jax.episodes.resumed import Recorded
from rl_jax.episodes.turn_taking import TurnTaking, policies_of
from rl_jax.judging.verifiers import POSITION
from rl_jax.rollouts.responses import own_rows
from rl_jax.runtime import processes
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import Ask, Opened
from rl_jax.types import Trajectories

OPEN = 'open_episodes'  # in the JSON object of checkpoints
WORTH_A_LINE = 1.0  # seconds of waiting that the log mentions
ACTION_SHOWN = 80  # characters
GLANCE = 0.001  # seconds of a wait for answers while a burst runs
PAUSE = 0.005  # of a process that knows of nothing to sample anywhere


class SlotRunner(EpisodeRecords):
  """Plays the episodes of a task that is an environment, and judges them.

  Of several processes each plays its own rows; all ask partners together.

  journal: of a SessionPool. partners: whom environments may ask. judged: see
  EpisodeRecords. closings: of batches whose groups depend on time. host_tokens:
  of rows that wait without a place in the cache, in the memory of the host.
  """

  def __init__(
    self,
    turns: TurnTaking,
    journal: NumberedCalls,
    *,
    partners: Partners = NO_PARTNERS,
    judged: bool = False,
    closings: ClosingJournal | None = None,
    host_tokens: int = 0,
  ):
    super().__init__(turns, journal, judged)
    self._partners = partners
    self.activity = timeline.Activity(self.tools_of)
    journal.heard = self.activity.answered
    self.host_cache = HostCache(host_tokens)
    self.closings = closings or ClosingJournal()
    self._questions = Questions(partners, journal)
    self._host = Host(turns, self._questions, self.activity)
    self._rounds = 0
    self._games: dict[int, Game] = {}  # that are played, by number
    # Bursts that may run, in the order in which they were started.
    self._flying: collections.deque[tuple[Game, Burst]] = collections.deque()
    self._longest = Wait()  # for a call, since the last batch
    self._pause: float | None = None  # since when nothing could be sampled
    self._waited = 0.0  # seconds, for the last batch

  def tools_of(self, request: Request) -> tuple[str, ...]:
    """Names of the tools that a step calls; of a question its partner."""
    payload = request.payload
    if isinstance(payload, Ask):
      return (payload.partner,)
    if payload is None or not payload.actions:
      return ()
    return self._task.tools_in(payload.example, payload.actions[-1])

  def open(self, examples: Sequence[Example], kept: Kept) -> list[Opened]:
    """The examples with their first observations; see `beginnings`."""
    self._rounds += 1
    return beginnings.open_all(
      self._task,
      examples,
      functools.partial(self._journal.ask, kept=kept),
      self._partners,
      self._rounds,
    )

  def play(
    self,
    engine: Engine,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    examples: Sequence[Opened],
    recorded: Recorded | None = None,
  ) -> Trajectories:
    """Whole episodes of the examples, `traj.group_size` of each.

    In a game all players are rows of `traj`; if params have the policy
    'opponent', it plays against each of them with its own rows.
    recorded: rows of `traj` on the host if they continue inside a turn; None:
    they are empty. Games of several players do not continue.

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
  ) -> Game:
    """Episodes that are played until they are over, with these weights.

    params must outlive updates: the device may read them to the end. groups:
    that are played, None: all; the rows of others only fill the shape.
    recorded: see play.
    """
    assert engine.slots is not None
    own = own_rows(len(examples), traj.group_size)
    policies = policies_of(params)
    self._rounds += 1
    seats = self.turns.seated(
      self._rounds, examples, traj.group_size, own, len(policies)
    )
    number = self._journal.stream(self._rounds)
    round_ = Round(number, engine, traj, examples, recorded)
    played = range(len(examples)) if groups is None else groups
    game = None
    for weights, players in zip(policies, seats, strict=True):
      rows = self._rows_of(players, own, round_, played)
      slots = self._begun_slots(weights, key, rows, round_, game is not None)
      game = Game(self._host, slots, rows, round_, played, game)
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
      row.acting = not row.over and self.turns.begins(example)
      rows.append(row)
    if round_.recorded is not None:
      go_inside(rows, round_.recorded)
    return rows

  def _begun_slots(self, params, key, rows, round_, opponent):
    """Slots of a table, whose rows have been given their first tokens."""
    engine, traj, acting_B = round_.engine, round_.traj, None
    if round_.recorded is not None:  # all of them have tokens
      acting_B = np.zeros(len(traj.length_B), bool)
    elif self.turns.players > 1:
      acting_B = np.array(gathered([row.acting for row in rows]))
    if opponent:
      traj = engine.opponents(traj)
    most = self.turns.most_observed(traj.response_BT.shape[1])
    engine.slots.settle(params, traj, key, most, acting_B)
    self.activity.works()
    return RunningSlots(
      engine.slots, params, traj, key, most, acting_B, self.host_cache
    )

  def begin(self) -> None:
    """Begins a batch: what metrics count is 0."""
    self.activity.begin()
    self._partners.begin()

  def finish(self, game: Game, beside: Sequence[Game] = ()) -> Trajectories:
    """The rows of a game at its end; others continue beside it meanwhile."""
    self.begin()
    while not game.over:
      self.go_on((game, *beside))
    self.take([(game, group) for group in game.groups])
    self.end(game)
    return self._trajectories(game)

  def go_on(self, games: Sequence[Game]) -> None:
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

  def so_far(self, game: Game) -> Trajectories:
    """The rows of a game, of which some may not be over.

    Until `take` the records, and so `outcomes`, are of these rows.
    """
    self._look_at([(game, group) for group in game.groups])
    return self._trajectories(game)

  def take(self, groups: Places) -> None:
    """Makes these groups, which are over, those of records and metrics.

    groups: (game, number in it), in the order of the batch.

    Raises:
      RuntimeError: too many of the episodes have failed.
    """
    self._hear_all()  # what others have called runs during the update
    self._look_at(groups)
    self._waited = self.activity.metrics()['rollout/waited_for']
    if self._longest.seconds >= WORTH_A_LINE:
      logging.info(
        'episodes waited %.1f s for calls, at most %.1f s without a pause: %s',
        self._waited,
        self._longest.seconds,
        self.named(self._longest.request),
      )
    self._longest = Wait()
    self._check_share()

  def end(self, game: Game) -> None:
    """Ends the episodes of a game; its rows may still be read."""
    del self._games[game.round.number]
    # If no row had anything to sample, first tokens were never read.
    self._flying = collections.deque(
      one for one in self._flying if one[0].first is not game
    )
    self._questions.drop(game.round.number)
    self._journal.over(game.round.number)

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

  def metrics(self) -> dict[str, float]:
    """Metrics of the last batch; with those of timeline.Activity.

    Each question of an episode counts, as what is asked together depends on
    time.
    """
    again = self._journal.made_again()
    found = {
      **super().metrics(),
      **{f'calls/{x}': float(n) for x, n in again.items()},
      'time/environment_seconds': self._waited,
      **self._partners.metrics(),
      **self.activity.metrics(),
    }
    if QUESTIONS in found:
      found[QUESTIONS] = float(sum(one['questions'] for one in self._records))
    return found

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


class Wait(NamedTuple):
  """Seconds without anything to sample, and the call that ended them."""

  seconds: float = 0.0
  request: Request | None = None


def _tables(games: Iterable[Game]) -> list[Game]:
  """The tables of games."""
  return [table for game in games for table in game.tables]
