"""Turns in step: all rows wait for the slowest call of every turn.

After each turn the host reads the tokens once, asks the environments of its own
rows, and puts what they say after the rows.
"""

from collections.abc import Callable, Sequence
import dataclasses
import time
from typing import Any

import jax
import numpy as np

from rl_jax.decoding.engine import Engine
from rl_jax.decoding.turn_decode import Observations
from rl_jax.episodes import timeline
from rl_jax.episodes.episodes import EpisodeRunner, gathered, policies_of
from rl_jax.episodes.players import Player
from rl_jax.episodes.resumed import Recorded, repeat
from rl_jax.rollouts.responses import own_rows
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks.environments.base import Opened
from rl_jax.types import Trajectories


@dataclasses.dataclass
class Side:
  """The rows that one policy plays, and their state on the device.

  players: of own rows. The others are of all rows. begun: tokens before this
  turn and its observation; given: with it. turns: that they have had. context:
  where what they see of their tokens begins; context_BT: what each token saw.
  """

  players: list[Player]
  weights: Any
  playing: Any
  tokens: Any
  live_B: np.ndarray
  begun_B: np.ndarray
  given_B: np.ndarray
  turns_B: np.ndarray
  turn_BT: np.ndarray
  context_B: np.ndarray = dataclasses.field(init=False)
  context_BT: np.ndarray = dataclasses.field(init=False)

  def __post_init__(self):
    self.context_B = np.zeros_like(self.begun_B)
    self.context_BT = np.zeros_like(self.turn_BT)


class LockstepRunner(EpisodeRunner):
  """An EpisodeRunner whose rows have their turns together."""

  _first = 0  # of the rows of this process, in the last round

  def play(
    self,
    engine: Engine,
    params: Any,
    traj: Trajectories,
    key: jax.Array,
    examples: Sequence[Opened],
    recorded: Recorded | None = None,
  ) -> Trajectories:
    """See EpisodeRunner.play."""
    policies = policies_of(params)
    own = own_rows(len(examples), traj.group_size)
    self._first, self._seconds = own.start, 0.0
    self.activity.begin()
    self._partners.begin()
    seats = self._seated(examples, traj.group_size, own, len(policies))
    self._rows = seats[0]
    if recorded is not None:
      for row, player in zip(range(own.start, own.stop), seats[0], strict=True):
        player.episode.cut = not recorded.live_B[row]
    games = {id(p.episode): p.episode for rows in seats for p in rows}
    self._ask([x for x in games.values() if not (x.cut or x.failure)])
    for rows in seats:
      for row, player in zip(range(own.start, own.stop), rows, strict=True):
        self._check_start(player, examples[row // traj.group_size])
    if recorded is not None:
      rows = range(own.start, own.stop)
      repeat(recorded, seats[0], rows, self._ask, self._stop, self._format)
    sides = [
      self._begun(engine, weights, traj, key, rows, n > 0, recorded)
      for n, (weights, rows) in enumerate(zip(policies, seats, strict=True))
    ]
    self._exchange(engine, sides, own)
    self._records = gathered([self._record(player) for player in self._rows])
    self._live_B = None if recorded is None else recorded.live_B
    self._check_share()
    first = sides[0]
    marks = (first.turn_BT, first.context_BT)
    return self._finished(engine, traj, first.playing, marks, examples)

  def _exchange(self, engine, sides, own):
    """Turns until all episodes are over; own: rows of this process."""
    replicated = mesh_lib.replicated(engine.mesh)
    for _ in range(self._turns.max_turns * self._players):
      live = sum(int(side.live_B.sum()) for side in sides)
      with self.activity.span(timeline.DEVICE, 'turn', rows=live):
        hosts = [self._read(side.tokens, own) for side in sides]
      acting = []
      for side, host in zip(sides, hosts, strict=True):
        acting += self._act(side, host, own)
      self._ask(acting)
      for side, host in zip(sides, hosts, strict=True):
        said = self._observations(side, host, own)
        if side.live_B.any():
          # In a game rows also wait for each other.
          if self._players == 1 and engine.narrowed is not None:
            side.playing = engine.narrowed(side.playing, side.live_B)
          side.playing, side.tokens = engine.turn(
            side.weights, side.playing, processes.put(said, replicated)
          )
      if not any(side.live_B.any() for side in sides):
        break

  def _begun(self, engine, params, traj, key, players, opponent, recorded):
    """A side after its first turn, which in a game not all rows have."""
    B, T = traj.response_BT.shape
    acting, live_B = {}, np.ones(B, bool)
    if self._players > 1:
      live_B = np.array(gathered([player.acts() for player in players]))
      acting['acting_B'] = processes.put(
        live_B, mesh_lib.replicated(engine.mesh)
      )
    if opponent:
      traj = engine.opponents(traj)
    weights, playing, tokens = engine.begin(
      params, traj=traj, key=key, **acting
    )
    none_B = np.zeros(B, np.int32)
    side = Side(
      players=players,
      weights=weights,
      playing=playing,
      tokens=tokens,
      live_B=live_B,
      begun_B=none_B,
      given_B=none_B,
      turns_B=none_B,
      turn_BT=np.full((B, T), -1),
    )
    if recorded is None:
      return side
    return dataclasses.replace(
      side,
      live_B=recorded.live_B,
      begun_B=recorded.begun_B,
      given_B=recorded.given_B,
      turns_B=recorded.open_B,
      turn_BT=recorded.turn_BT,
    )

  def _ask(self, episodes):
    started = time.perf_counter()
    with self.activity.span(
      timeline.WAITING, 'waits for all answers', episodes=len(episodes)
    ):
      self._partners.play_on(self._journal.ask, episodes)
    self._seconds += time.perf_counter() - started

  def _read(self, tokens, own):
    """One read: lengths of all rows, tokens of own ones."""
    if processes.count() == 1:
      return processes.read(tokens)
    mine = {name: tokens[name] for name in ('response', 'finished')}
    every = {'length': tokens['length']}
    return processes.read(every) | processes.fetch_rows(mine, own)

  def _act(self, side, host, own):
    """Takes the turns of a side; the episodes that are to answer."""
    T = side.turn_BT.shape[1]
    place_1T, length_B = np.arange(T)[None], host['length']
    new_BT = place_1T >= side.begun_B[:, None]
    new_BT &= (place_1T < length_B[:, None]) & side.live_B[:, None]
    side.turn_BT = np.where(new_BT, side.turns_B[:, None], side.turn_BT)
    side.context_BT = np.where(new_BT, side.context_B[:, None], side.context_BT)
    side.turns_B = side.turns_B + side.live_B
    length_R, given_R = length_B[own], side.given_B[own]
    acting = []
    for row, player in enumerate(side.players):
      if side.live_B[own][row] and player.acts():
        ids = host['response'][row, given_R[row] : length_R[row]]
        player.act(self._stop.text(ids), ids)
        acting.append(player.episode)
    return acting

  def _observations(self, side, host, own) -> Observations:
    """Returns what rows of a side read next; without room for a turn they are
    over.
    """
    B, T = side.turn_BT.shape
    left_B = side.turns_B < self._turns.max_turns
    room_B = np.where(left_B, T - host['length'], 0)
    said = gathered(
      [
        self._next_ids(player, host['finished'][row], room_B[own][row])
        for row, player in enumerate(side.players)
      ]
    )
    length_B = np.array([len(ids or ()) for ids, _ in said], np.int32)
    most = T if self._task.traits.rewrites else self._format.most
    ids_BO = np.zeros((B, most), np.int32)
    for row, (ids, _) in enumerate(said):
      ids_BO[row, : length_B[row]] = ids or ()
    side.live_B = np.array([ids is not None for ids, _ in said])
    forget_B = np.array([forgets for _, forgets in said])
    side.begun_B = host['length']
    side.given_B = side.begun_B + length_B
    side.context_B = np.where(forget_B, side.begun_B, side.context_B)
    arrays: Any = (ids_BO, length_B, side.live_B, forget_B)
    ids_BO, length_B, live_B, forget_B = arrays
    return Observations(
      ids_BO=ids_BO, length_B=length_B, live_B=live_B, forget_B=forget_B
    )

  def shown(self) -> Callable[[int], dict[str, Any]]:
    """See EpisodeRunner."""
    rows, first = self._rows, self._first

    def of_row(row):
      here = first <= row < first + len(rows)
      return rows[row - first].shown() if here else {}

    return of_row

  def _process_of(self, row: int) -> int:
    return row * processes.count() // len(self._records)
