"""Episodes: turns of the policy on the device, of environments in workers.

The base of the runners of tasks that are environments: what is asked before the
first turn, what rows read, and the record. Ids in the record are those that
were sampled or put there; nothing is encoded twice.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
import functools
import socket
from typing import Any

from absl import logging
import jax
import numpy as np

from rl_jax.decoding.engine import Engine
from rl_jax.decoding.stop import Stop
from rl_jax.episodes import beginnings, timeline
from rl_jax.episodes.calls import Request
from rl_jax.episodes.journal import Kept, NumberedCalls
from rl_jax.episodes.partners import NO_PARTNERS, Partners
from rl_jax.episodes.players import Episode, Player, episode_metrics
from rl_jax.episodes.resumed import Recorded
from rl_jax.episodes.turn_arrays import turn_arrays
from rl_jax.episodes.turns import TurnConfig, turn_format
from rl_jax.judging.verifiers import Journaled
from rl_jax.rollouts.responses import Texts
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import (
  Ask,
  Opened,
  seed_of,
)
from rl_jax.types import Trajectories
from rl_jax.verification.pool import Outcome, VerifierConfig

DEFAULTS = VerifierConfig()
OPPONENT = 'opponent'  # the named policy that plays against the policy


def gathered(values: list[Any]) -> list[Any]:
  """The values of the rows of all processes, in order."""
  return [value for part in processes.gather(values) for value in part]


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


def policies_of(params: Any) -> list[Any]:
  """The weights of the policy, and of its opponent if the run has one."""
  opponent = params.get('policies', {}).get(OPPONENT)
  return [params] if opponent is None else [params, opponent]


class EpisodeRunner(Journaled):
  """Base of those that play and judge; see `verifiers` for what a run asks.

  journal: of a SessionPool.
  stop: what ends a turn. partners: whom environments may ask. judged: whether
  judges read episodes, of which all processes then know the texts.
  settings: what happens to calls that fail.
  """

  def __init__(
    self,
    task: Any,
    journal: NumberedCalls,
    *,
    tokenizer: Any,
    stop: Stop,
    turns: TurnConfig,
    partners: Partners = NO_PARTNERS,
    judged: bool = False,
    settings: VerifierConfig = DEFAULTS,
  ):
    super().__init__(journal)
    self._task = task
    self._turns, self._stop, self._partners = turns, stop, partners
    self._judged, self._settings = judged, settings
    self._format = turn_format(task, tokenizer, turns)
    self._players = task.traits.players
    self._timeout_text = task.traits.stateless and task.traits.timeout_text
    self._rounds = 0
    self._rows: list[Player] = []  # of this process, in the last round
    self._records: list[dict[str, Any]] = []  # of all rows
    self._live_B: np.ndarray | None = None  # that take part; None: all
    self._seconds = 0.0
    self._counted = UnweightedRewardWarning()
    self.activity = timeline.Activity(self.tools_of)
    journal.heard = self.activity.answered

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

  @abc.abstractmethod
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
      RuntimeError: one begins in another way than its example.
    """

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
    share = self._settings.failed_share
    if len(counted) <= share * len(rows):
      return
    first, (kind, detail) = next(iter(counted.items()))
    host = processes.gather(socket.gethostname())[self._process_of(first)]
    where = f'row {first} on host {host}'
    if tools := self._records[first].get('tools'):
      where += f', tools {", ".join(tools)}'
    raise RuntimeError(
      f'{type(self._task).__name__}: {len(counted)} of {len(rows)} episodes of '
      f'a round have failed, more than verifier.failed_share = {share}; the '
      f'first is {where}, {kind}: {detail}'
    )

  @abc.abstractmethod
  def _process_of(self, row: int) -> int:
    """The process that has played a row of the last round."""

  def _takes_part(self, row):
    return self._live_B is None or self._live_B[row]

  def said(self, texts: Texts, own: slice) -> list[list[tuple[str, str]]]:
    """Returns what judges read of own rows: (action, answer) of every turn."""
    del texts
    return [one.get('exchanged', []) for one in self._records[own]]

  @abc.abstractmethod
  def shown(self) -> Callable[[int], dict[str, Any]]:
    """Returns what is logged of a row, {} if another process has played it."""

  def metrics(self) -> dict[str, float]:
    """Metrics of the last round over the rows that take part."""
    rows = filter(self._takes_part, range(len(self._records)))
    return {
      **episode_metrics([self._records[row] for row in rows]),
      **{f'calls/{x}': float(n) for x, n in self._journal.made_again().items()},
      'time/environment_seconds': self._seconds,
      **self._partners.metrics(),
    }

  def _seated(self, examples, group_size, own, policies):
    """Players of own rows, for each policy.

    Rows of the players of an example are adjacent groups. Of one policy, sample
    g of them is one game; of two, each row of the first meets one of the other.
    """
    P, games, seats = self._players, {}, []
    whole = P * group_size
    if own.start % whole or own.stop % whole or (policies > 1 and P > 2):
      raise ValueError(
        f'{type(self._task).__name__}: {P} players of {policies} policies; a '
        'process needs the prompts of whole games, and an opponent two players'
      )
    self._rounds += 1
    for side in range(policies):
      seats.append([])
      for row in range(own.start, own.stop):
        n, sample = divmod(row, group_size)
        role = n % P
        if policies == 1:
          n -= role  # the row of the first player
        elif side:
          n += 1 - 2 * role  # the row of the policy that is trained
        place = n * group_size + sample
        if place not in games:
          example, failure = examples[n], None
          if isinstance(example, Opened):
            example, failure = example.origin, example.failure
          key = (self._rounds, place)
          games[place] = Episode(
            key,
            example,
            P,
            failure=failure,
            rewrites=self._task.traits.rewrites,
            on_timeout=self._settings.on_turn_timeout,
            timeout_text=self._timeout_text,
          )
        seats[-1].append(Player(games[place], role))
    return seats

  def _named(self, example):
    name = type(self._task).__name__
    return (
      f'{name}: the episode of example {example.id}, seed {seed_of(example)},'
    )

  def _check_start(self, player, example):
    if player.episode.failure is not None or player.episode.cut:
      return
    text = player.part(player.episode.beginning())
    if text != example.observation:
      raise RuntimeError(
        f'{self._named(player.episode.example)} begins in two ways: '
        f'{text!r:.300} and {example.observation!r:.300}; `reset` must depend '
        'on nothing but its seed'
      )

  def _next_ids(self, player, finished, room):
    """(ids before the player's next turn, None: it has none now; forgets)."""
    if not player.acts():
      return None, False
    episode, history = player.episode, player.remembers()
    forgets = history is not None
    try:
      again = self._format.again(player.ids, history or ())
      # A stop text ends a turn too, without its end token; right after the
      # prompt, which opens a turn, an empty one is closed.
      if forgets or player.ids:
        last = again if forgets else player.ids[-1][1]
        finished = bool(last) and last[-1] in self._format.tokenizer.eos_ids
      ids, left_out = self._format.observation(player.heard(), not finished)
      player.opening, ids = ids, [*again, *ids]
    except (ValueError, IndexError) as error:  # of a character tokenizer
      episode.fail(f'the observation: {error}')
      return None, False
    player.left_out += left_out
    if not ids and (forgets or not player.begun):
      text = 'a player heard nothing before its first turn'
      if forgets:
        text = 'forget = True with an empty observation'
      episode.fail(text)
      return None, False
    if len(ids) >= room:
      episode.cut = True
      return None, False
    return ids, forgets

  def _finished(self, engine, traj, playing, marks, examples):
    """The record of rows; marks: the turn and the context of each token."""
    turn_BT, context_BT = marks
    finished_B = np.array([r['finished'] for r in self._records])
    turns = turn_arrays(
      self._records, list(map(self._weights, examples)), self._turns.max_turns
    )
    arrays = {
      'finished_B': finished_B,
      'turn_BT': turn_BT.astype(np.int32),
      'turns': turns,
    }
    if self._players > 1:
      role_N = [example.role for example in examples]
      arrays['role_B'] = np.repeat(np.array(role_N, np.int32), traj.group_size)
    if self._task.traits.rewrites:
      arrays['context_BT'] = context_BT.astype(np.int32)
    replicated = mesh_lib.replicated(engine.mesh)
    return engine.finish(traj, playing, **processes.put(arrays, replicated))

  def _weights(self, example):
    return self._task.weights_of(example)
