"""Episodes as they are played, and what their players hear and do."""

from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any

from absl import logging

from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import Ask, Reply, seed_of
from rl_jax.tasks.episodes import CALL
from rl_jax.verification import session_host
from rl_jax.verification.pool import LOST
from rl_jax.verification.sessions import Answer, Request

PARTNER = -1  # in place of the player: an answer to what was asked
_SHOWN = 2000  # characters of an observation in the log
_LOGGED = 3  # invalid episodes


@dataclasses.dataclass
class Episode:
  """One episode of this process; a game has several players.

  said: replies. actions and roles: what was done, and by which player; answers
  of partners are among them. cut: it ended at a limit of the policy's own.
  rewrites: whether replies may forget. on_timeout: 'wrong' if a turn that takes
  too long, or ends its process, ends the episode; `lost` is then how.
  timeout_text: the observation in place of one that takes too long; '': none.
  """

  key: tuple[int, int]
  example: Example
  players: int = 1
  said: list[dict[str, Any]] = dataclasses.field(default_factory=list)
  actions: list[str] = dataclasses.field(default_factory=list)
  roles: list[int] = dataclasses.field(default_factory=list)
  prints: list[int] = dataclasses.field(default_factory=list)  # of `said`
  failure: tuple[str, str] | None = None  # kind, detail
  cut: bool = False
  rewrites: bool = False
  on_timeout: str = 'invalid'
  lost: tuple[str, str] | None = None  # kind, detail
  timeout_text: str = ''
  timeouts: int = 0  # calls that took too long

  def request(self) -> Request:
    """The next call: of its newest action."""
    return Request(
      self.key,
      self.example,
      seed_of(self.example),
      tuple(self.actions),
      tuple(self.prints),
    )

  def hear(self, answer: Answer) -> None:
    """Notes what the environment has said."""
    if answer.reply is None:
      self._miss(answer.kind, answer.detail)
      return
    observation = answer.reply['observation']
    found = 1 if isinstance(observation, str) else len(observation)
    if found != self.players:
      self.fail(
        f'observations of {found} players, but the task has {self.players}'
      )
      return
    if answer.reply.get('forget') and not self.rewrites:
      self.fail('forget = True, but the task has rewrites = False')
      return
    self.said.append(answer.reply)
    self.prints.append(session_host.fingerprint(answer.reply))

  def _miss(self, kind, detail):
    """Notes that nothing was said: to a turn of the policy that is its end."""
    self.timeouts += kind == 'timeout'
    if self.timeout_text and kind == 'timeout' and self.acted:
      info = {'timeout': detail}
      self._say(Reply(self.timeout_text, info=info), kind)
      return
    if self.on_timeout == 'invalid' or kind not in LOST or not self.acted:
      self.failure = (kind, detail)
      return
    self.lost = (kind, detail)
    nothing = '' if self.players == 1 else ('',) * self.players
    end = Reply(nothing, acting=self.said[-1]['acting'], done=True)
    self._say(end, kind)

  def _say(self, reply, kind):
    """Notes a reply that no environment has made."""
    self.said.append(session_host.check_reply(reply, kind))
    self.prints.append(session_host.fingerprint(self.said[-1]))

  def fail(self, text: str) -> None:
    """The episode is invalid; the first ones of a process are logged."""
    self.failure = ('invalid', text)
    logging.log_first_n(
      logging.WARNING,
      'the episode of example %s is invalid: %s',
      _LOGGED,
      self.example.id,
      text,
    )

  def asks(self) -> Ask | None:
    """Returns what its environment waits for, if it has asked a partner."""
    ask = None if self.over() else self.said[-1].get('ask')
    if ask is None:
      return None
    return Ask(ask['partner'], ask['text'], tuple(ask['candidates']))

  @property
  def acted(self) -> bool:
    """Returns whether a player has had a turn."""
    return any(role != PARTNER for role in self.roles)

  def questions(self) -> int:
    """The questions that were answered since the last turn of a player."""
    answers = itertools.takewhile(lambda r: r == PARTNER, reversed(self.roles))
    return sum(1 for _ in answers)

  @property
  def asked(self) -> int:
    """The questions that partners have answered."""
    asks = [
      reply['ask']['partner']
      for reply, role in zip(self.said, self.roles, strict=False)
      if role == PARTNER
    ]
    return len(asks) - asks.count(CALL)

  def observe(self, answer: str) -> None:
    """Notes the answer of a partner."""
    self.actions.append(answer)
    self.roles.append(PARTNER)

  @property
  def begun(self) -> int:
    """Replies before the first turn of a player."""
    answers = itertools.takewhile(lambda role: role == PARTNER, self.roles)
    return 1 + sum(1 for _ in answers)

  def beginning(self) -> str | tuple[str, ...]:
    """Returns what is said before the first turn; of a game, by player."""
    texts = [reply['observation'] for reply in self.said[: self.begun]]
    if self.players == 1:
      return ''.join(texts)
    return tuple(''.join(own) for own in zip(*texts, strict=True))

  def over(self) -> bool:
    """Returns whether the environment takes no further action."""
    if self.cut or self.failure is not None:
      return True
    return self.said[-1]['done'] or self.said[-1]['truncated']


@dataclasses.dataclass
class Player:
  """One row: an episode from the place of a player.

  left_out: observations of which some was left out. opening: ids that open its
  next turn, without repeated ones; ids: those and the action's, by turn.
  """

  episode: Episode
  role: int = 0
  left_out: int = 0
  opening: list[int] = dataclasses.field(default_factory=list)
  ids: list[tuple[list[int], list[int]]] = dataclasses.field(
    default_factory=list
  )

  def acts(self) -> bool:
    """Returns whether the next turn is this player's."""
    episode = self.episode
    begun = episode.said and not episode.over()
    return bool(begun) and episode.said[-1]['acting'] == self.role

  def act(self, action: str, ids: Sequence[int] = ()) -> None:
    """Takes the turn; ids: of the action."""
    self.episode.actions.append(action)
    self.episode.roles.append(self.role)
    self.ids.append((self.opening, [*map(int, ids)]))

  @property
  def begun(self) -> bool:
    """Returns whether the player has had a turn."""
    return self.role in self.episode.roles

  def heard(self) -> str:
    """Returns what was said since its last turn, or after the first
    observation.
    """
    start = self._unheard()
    forgotten = self._forgotten(start)
    start = start if forgotten is None else forgotten
    return self._text(start, len(self.episode.said))

  def remembers(self) -> list[tuple[int, str | None]] | None:
    """The turns that it remembers before its next observation; None: all."""
    forgotten = self._forgotten(self._unheard())
    return (
      None if forgotten is None else self.episode.said[forgotten]['history']
    )

  def _unheard(self) -> int:
    """The first reply after its last turn, or after the beginning."""
    own = self._own()
    return own[-1] + 1 if own else self.episode.begun

  def _forgotten(self, start: int) -> int | None:
    """The last reply from `start` on that forgets what is before it."""
    said = list(enumerate(self.episode.said))[start:]
    return next((n for n, reply in reversed(said) if reply.get('forget')), None)

  def record(self) -> dict[str, Any]:
    """JSON for all processes; states are those that the policy has faced."""
    said, own = self.episode.said, self._own()
    replies = said[1:]
    heard = [n for n in own if n < len(replies)]  # of the others a call failed
    return {
      'rewards': self._rewards(),
      'states': [said[n]['state'] for n in own],
      'actions': [replies[n]['action'] for n in heard],
      'calls': [replies[n]['calls'] for n in heard],
      'duration': [replies[n]['duration'] for n in heard],
      'begun': bool(said),
      'turns': len(own),
      'failure': self.episode.failure,
      'lost': self.episode.lost,
      'timeouts': self.episode.timeouts if self.role == 0 else 0,
      'questions': self.episode.asked if self.role == 0 else 0,
      'finished': bool(replies) and replies[-1]['done'],
      'cut': self.left_out,
    }

  def exchanged(self) -> list[tuple[str, str]]:
    """Its actions, each with what it heard before its next one or the end."""
    own = self._own()
    ends = [*(n + 1 for n in own), len(self.episode.said)][1:]
    return [
      (self.episode.actions[n], self._text(n + 1, end))
      for n, end in zip(own, ends, strict=True)
    ]

  def shown(self) -> dict[str, Any]:
    """Returns what is logged: the seed, and what each turn read, did and
    earned.
    """
    said, turns, start = self.episode.said, [], 0
    rewards = self._rewards()
    for k, n in enumerate(self._own()):
      turn: dict[str, Any] = {'observation': self._text(start, n + 1)[:_SHOWN]}
      if any(reply.get('forget') for reply in said[start : n + 1]):
        turn['forgets'] = True
      turn['action'] = self.episode.actions[n]
      if n + 1 < len(said):
        reply = said[n + 1]
        turn |= {'understood': reply['action'], 'rewards': rewards[k]}
        turn |= {'calls': reply['calls'], 'info': reply['info']}
        turn |= self._asked(n + 1)
      turn['state'] = said[n]['state']
      turns.append(turn)
      start = n + 1
    last, end = said[-1] if said else None, 'limit'
    if self.episode.failure:
      end = self.episode.failure[0]
    elif self.episode.lost:
      end = self.episode.lost[0]
    elif last and (last['done'] or last['truncated']):
      end = 'done' if last['done'] else 'truncated'
    text = self._text(start, len(said))[:_SHOWN]
    shown = {'seed': seed_of(self.episode.example), 'turns': turns, 'end': end}
    shown['last_observation'] = text
    return shown if self.episode.players == 1 else {'role': self.role, **shown}

  def _asked(self, start: int) -> dict[str, Any]:
    """Questions and answers between an action and the next one; {}: none."""
    said, found = self.episode.said, []
    for n, role in enumerate(self.episode.roles[start:], start):
      if role != PARTNER:
        break
      ask = said[n]['ask']
      question = CALL if ask['partner'] == CALL else ask['text'][:_SHOWN]
      found.append([question, self.episode.actions[n][:_SHOWN]])
    return {'asked': found} if found else {}

  def _own(self) -> list[int]:
    """Places of its actions among all."""
    return [n for n, role in enumerate(self.episode.roles) if role == self.role]

  def _rewards(self) -> list[dict[str, float]]:
    """Rewards by turn; those in turns of others count in its own last one.

    What comes before its first turn is of that turn; a beginning has none.
    """
    found: list[dict[str, float]] = []
    start = self.episode.begun
    for n, reply in enumerate(self.episode.said[start:], start - 1):
      turns = self.episode.roles[: n + 1].count(self.role)
      if len(found) < max(turns, 1):
        found.append({})
      for name, value in self.part(reply['rewards']).items():
        found[-1][name] = found[-1].get(name, 0.0) + value
    return found

  def _text(self, start: int, end: int) -> str:
    said = self.episode.said[start:end]
    return ''.join(self.part(reply['observation']) for reply in said)

  def part(self, value: Any) -> Any:
    """The player's own part of what is said or rewarded."""
    return value if self.episode.players == 1 else value[self.role]


def episode_metrics(records: Sequence[dict[str, Any]]) -> dict[str, float]:
  """Metrics of the records of players; without records there are no means.

  Failed rows are counted as reward errors, and so are lost turns.
  """
  kinds = [r['failure'][0] for r in records if r['failure']]
  turns = sum(r['turns'] for r in records)
  calls = sum(sum(r['calls']) for r in records)
  means = {'episode/turns': turns, 'episode/calls': calls} if records else {}
  return {
    **{name: total / len(records) for name, total in means.items()},
    'calls/timeouts': sum(r['timeouts'] for r in records),
    'episode/cut_observations': sum(r['cut'] for r in records),
    'episode/mismatches': kinds.count('mismatch'),
    'episode/failed_resets': sum(not r['begun'] for r in records),
  }
