"""Episodes: turns of the policy on the device, of environments in workers.

The verifier of tasks that are environments. Ids in the record are those that
were sampled or put there; nothing is encoded twice. After each turn the host
reads the tokens once, asks the environments of its own rows, and puts what they
say behind the rows.
"""

from collections.abc import Callable, Sequence
import dataclasses
import time
from typing import Any

import jax
import numpy as np

from rl_jax.rollouts.engine import Engine
from rl_jax.rollouts.responses import Texts, own_rows
from rl_jax.rollouts.stop import Stop
from rl_jax.rollouts.turn_decode import Said
from rl_jax.rollouts.turns import TurnConfig, turn_format
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import Opened, opened, seed_of
from rl_jax.tasks.environments.several import begins_in_chat
from rl_jax.types import Trajectories, Turns
from rl_jax.verification import session_host
from rl_jax.verification.pool import Outcome
from rl_jax.verification.sessions import Answer, Request

_SHOWN = 2000  # characters of an observation in the log


@dataclasses.dataclass
class Episode:
  """One row of this process, as it is played."""

  key: tuple[int, int]
  example: Example
  said: list[dict[str, Any]] = dataclasses.field(default_factory=list)
  actions: list[str] = dataclasses.field(default_factory=list)
  prints: list[int] = dataclasses.field(default_factory=list)  # of `said`
  failure: tuple[str, str] | None = None  # kind, detail
  cut: int = 0  # observations of which some was left out

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
      self.failure = (answer.kind, answer.detail)
    else:
      self.said.append(answer.reply)
      self.prints.append(session_host.fingerprint(answer.reply))

  def over(self) -> bool:
    """Whether the environment takes no further action."""
    if self.failure is not None:
      return True
    return self.said[-1]['done'] or self.said[-1]['truncated']

  def record(self) -> dict[str, Any]:
    """JSON for all processes; states are those that the policy has faced."""
    replies, turns = self.said[1:], len(self.actions)
    return {
      'rewards': [reply['rewards'] for reply in replies],
      'states': [reply['state'] for reply in self.said[:turns]],
      'actions': [reply['action'] for reply in replies],
      'calls': [reply['calls'] for reply in replies],
      'turns': turns,
      'failure': self.failure,
      'finished': bool(replies) and replies[-1]['done'],
      'cut': self.cut,
    }

  def shown(self) -> dict[str, Any]:
    """What is logged: for each turn what was read, done and rewarded."""
    turns = []
    for n, action in enumerate(self.actions):
      turn = {'observation': self.said[n]['observation'][:_SHOWN]}
      turn['action'] = action
      if n + 1 < len(self.said):
        names = ('rewards', 'action', 'calls', 'info')
        reply = {name: self.said[n + 1][name] for name in names}
        turn['understood'] = reply.pop('action')
        turn |= reply
      turn['state'] = self.said[n]['state']
      turns.append(turn)
    last = self.said[-1] if self.said else None
    end = 'limit'
    if self.failure:
      end = self.failure[0]
    elif last and self.over():
      end = 'done' if last['done'] else 'truncated'
    text = last['observation'][:_SHOWN] if last else ''
    return {'turns': turns, 'end': end, 'last_observation': text}


class Episodes:
  """Plays and judges; see `verifiers` for what a run asks of it.

  pool: a SessionPool. journal: a JournaledPool around it.
  stop: what ends a turn.
  """

  def __init__(
    self,
    task: Any,
    pool: Any,
    journal: Any,
    *,
    tokenizer: Any,
    stop: Stop,
    turns: TurnConfig,
  ):
    self._task, self._pool, self._journal = task, pool, journal
    self._turns, self._stop = turns, stop
    self._format = turn_format(task, tokenizer, turns)
    self._rounds = 0
    self._rows: list[Episode] = []  # of this process, in the last round
    self._first = 0  # of them
    self._records: list[dict[str, Any]] = []  # of all rows
    self._seconds = 0.0

  def open(self, examples: Sequence[Example]) -> list[Opened]:
    """The examples with their first observations.

    Raises: ValueError if one does not begin.
    """
    found = []
    episodes = self._new(examples, 1, range(len(examples)))
    answers = self._pool.ask([e.request() for e in episodes])
    for episode, answer in zip(episodes, answers, strict=True):
      if answer.reply is None:
        raise ValueError(
          f'{self._named(episode.example)} does not begin: {answer.error}'
        )
      text = answer.reply['observation']
      chat = begins_in_chat(self._task, episode.example)
      found.append(opened(episode.example, text, chat))
    return found

  def play(
    self,
    engine: Engine,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    examples: Sequence[Opened],
  ) -> Trajectories:
    """Whole episodes of the examples, `traj.group_size` of each.

    Raises:
      RuntimeError: one begins in another way than its example.
    """
    whole = mesh_lib.replicated(engine.mesh)
    weights, playing, tokens = engine.begin(params, traj=traj, key=key)
    own = own_rows(len(examples), traj.group_size)
    self._first, self._seconds = own.start, 0.0
    rows = range(own.start, own.stop)
    self._rows = self._new([x.origin for x in examples], traj.group_size, rows)
    self._ask(self._rows)
    for row, episode in zip(rows, self._rows, strict=True):
      self._check_start(episode, examples[row // traj.group_size])
    B, T = traj.response_BT.shape
    place_1T, turn_BT = np.arange(T)[None], np.full((B, T), -1, np.int32)
    begun_B = given_B = np.zeros(B, np.int32)
    live_B = np.ones(B, bool)
    for turn in range(self._turns.max_turns):
      host = self._read(tokens, own)
      length_B = host['length']
      new_BT = (place_1T >= begun_B[:, None]) & (place_1T < length_B[:, None])
      turn_BT[new_BT & live_B[:, None]] = turn
      self._act(host, given_B[own], live_B[own])
      room_B = (
        T - length_B if turn + 1 < self._turns.max_turns else 0 * length_B
      )
      said = self._observations(host, room_B, own)
      live_B = said.live_B
      if not live_B.any():
        break
      begun_B, given_B = length_B, length_B + said.length_B
      playing, tokens = engine.turn(
        weights, playing, processes.put(said, whole)
      )
    self._records = _gathered([e.record() for e in self._rows])
    finished_B = np.array([r['finished'] for r in self._records])
    arrays = (finished_B, turn_BT, self._arrays(B, traj.group_size, examples))
    return engine.finish(traj, playing, *processes.put(arrays, whole))

  def outcomes(
    self,
    traj: Trajectories,
    examples: Sequence[Any],
    texts: Texts,
    due_B: np.ndarray | None = None,
  ) -> list[Outcome]:
    """The sums of the rewards of the rows that were played last."""
    del texts, due_B
    found = []
    for row in range(len(examples) * traj.group_size):
      record = self._records[row]
      if record['failure'] is not None:
        found.append(Outcome(None, *record['failure']))
        continue
      weights = self._weights(examples[row // traj.group_size])
      names = {base.OUTCOME, *weights}
      total = dict.fromkeys(sorted(names), 0.0)
      for rewards in record['rewards']:
        for name, value in rewards.items():
          total[name] = total.get(name, 0.0) + value
      found.append(Outcome(total))
    return found

  def shown(self) -> Callable[[int], dict[str, Any]]:
    """What is logged of a row, {} if another process has played it."""
    rows, first = self._rows, self._first

    def of_row(row):
      here = first <= row < first + len(rows)
      return rows[row - first].shown() if here else {}

    return of_row

  def metrics(self) -> dict[str, float]:
    """Of the last round; failed rows are counted as reward errors, too."""
    records = self._records
    mean = lambda values: float(np.mean(values)) if values else 0.0
    kinds = [r['failure'][0] for r in records if r['failure']]
    return {
      'episode/turns': mean([r['turns'] for r in records]),
      'episode/calls': mean([sum(r['calls']) for r in records]),
      'episode/cut_observations': sum(r['cut'] for r in records),
      'episode/mismatches': kinds.count('mismatch'),
      'time/environment_seconds': self._seconds,
    }

  def mark(self) -> int:
    """Position in the journal, for a checkpoint."""
    return self._journal.mark()

  def forget(self, position: int) -> None:
    """Drops what the journal holds from before a committed checkpoint."""
    self._journal.forget(position)

  def restore(self, position: int) -> None:
    """Goes back to a position in the journal."""
    self._journal.restore(position)

  def close(self) -> None:
    """Ends the workers."""
    self._journal.close()

  def _new(self, examples, group_size, rows):
    """Episodes that have not begun, of a round of their own."""
    self._rounds += 1
    return [
      Episode((self._rounds, row), examples[row // group_size]) for row in rows
    ]

  def _named(self, example):
    name = type(self._task).__name__
    return (
      f'{name}: the episode of example {example.id}, seed {seed_of(example)},'
    )

  def _ask(self, episodes):
    started = time.perf_counter()
    answers = self._journal.ask([e.request() for e in episodes])
    for episode, answer in zip(episodes, answers, strict=True):
      episode.hear(answer)
    self._seconds += time.perf_counter() - started

  def _check_start(self, episode, example):
    if episode.failure is not None:
      return
    text = episode.said[0]['observation']
    if text != example.observation:
      raise RuntimeError(
        f'{self._named(episode.example)} begins in two ways: {text!r:.300} and '
        f'{example.observation!r:.300}; `reset` must depend on its seed alone'
      )

  def _read(self, tokens, own):
    """One read: lengths of all rows, tokens of own ones."""
    if processes.count() == 1:
      return processes.read(tokens)
    mine = {name: tokens.pop(name) for name in ('response', 'finished')}
    return processes.read(tokens) | processes.fetch_rows(mine, own)

  def _act(self, host, given_R, live_R):
    """The environments of own rows answer the turns."""
    length_R = host['length'][self._first :][: len(self._rows)]
    acting = []
    for row, episode in enumerate(self._rows):
      if live_R[row] and not (episode.said == [] or episode.over()):
        ids = host['response'][row, given_R[row] : length_R[row]]
        episode.actions.append(self._stop.text(ids))
        acting.append(episode)
    self._ask(acting)

  def _observations(self, host, room_B, own) -> Said:
    """What the policy reads next; rows without room for a turn are over."""
    said = []
    for row, episode in enumerate(self._rows):
      ids = None
      if not (episode.said == [] or episode.over()):
        text = episode.said[-1]['observation']
        try:
          ids, cut = self._format.observation(text, not host['finished'][row])
          episode.cut += cut
        except ValueError as error:  # of a character tokenizer
          episode.failure = ('invalid', f'the observation: {error}')
      if ids is not None and len(ids) >= room_B[own][row]:
        ids = None
      said.append(ids)
    said = _gathered(said)
    length_B = np.array([len(ids or ()) for ids in said], np.int32)
    ids_BO = np.zeros((len(said), self._format.most), np.int32)
    for row, ids in enumerate(said):
      ids_BO[row, : length_B[row]] = ids or ()
    live_B = np.array([ids is not None for ids in said])
    return Said(ids_BO=ids_BO, length_B=length_B, live_B=live_B)

  def _weights(self, example):
    if hasattr(self._task, 'weights_of'):  # of several tasks
      return self._task.weights_of(example)
    return self._task.reward_weights

  def _arrays(self, B, group_size, examples):
    """Turns of the records; states and actions are numbered by group."""
    K = self._turns.max_turns
    found = {
      'reward': np.zeros((B, K), np.float32),
      'state': np.full((B, K), -1, np.int32),
      'action': np.full((B, K), -1, np.int32),
      'calls': np.zeros((B, K), np.int32),
    }
    numbers: dict[tuple, int] = {}
    for row, record in enumerate(self._records):
      if row % group_size == 0:
        numbers.clear()
        weights = self._weights(examples[row // group_size])
      for k, rewards in enumerate(record['rewards']):
        total = sum(w * rewards.get(name, 0.0) for name, w in weights.items())
        found['reward'][row, k] = total
        found['calls'][row, k] = record['calls'][k]
      for kind in ('state', 'action'):
        for k, name in enumerate(record[f'{kind}s']):
          if name is not None:
            number = numbers.setdefault((kind, name), len(numbers))
            found[kind][row, k] = number
    return Turns(**{f'{name}_BK': x for name, x in found.items()})


def _gathered(values: list[Any]) -> list[Any]:
  """Of the rows of all processes, in order."""
  return [value for part in processes.gather(values) for value in part]
