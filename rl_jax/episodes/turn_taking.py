"""The turns of players of an episode: who has one, what is read and done."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rl_jax.decoding.stop import Stop
from rl_jax.episodes import resumed
from rl_jax.episodes.players import Episode, Player
from rl_jax.episodes.turns import TurnConfig, turn_format
from rl_jax.tasks.environments.base import Opened, seed_of
from rl_jax.verification.pool import VerifierConfig

DEFAULTS = VerifierConfig()
OPPONENT = 'opponent'  # the named policy that plays against the policy


def policies_of(params: Any) -> list[Any]:
  """The weights of the policy, and of its opponent if the run has one."""
  opponent = params.get('policies', {}).get(OPPONENT)
  return [params] if opponent is None else [params, opponent]


class TurnTaking:
  """The turns of the players of a task, as texts and as token ids.

  stop: what ends a turn. turns: limits. settings: what happens to calls that
  fail.
  """

  def __init__(
    self,
    task: Any,
    *,
    tokenizer: Any,
    stop: Stop,
    turns: TurnConfig,
    settings: VerifierConfig = DEFAULTS,
  ):
    self.task, self._stop, self.settings = task, stop, settings
    self.max_turns = turns.max_turns
    self._format = turn_format(task, tokenizer, turns)
    self.players = task.traits.players
    self._timeout_text = task.traits.stateless and task.traits.timeout_text

  def seated(
    self,
    number: int,
    examples: Sequence[Any],
    group_size: int,
    own: slice,
    policies: int,
  ) -> list[list[Player]]:
    """Players of own rows, for each policy, in round `number`.

    Rows of the players of an example are adjacent groups. Of one policy, sample
    g of them is one game; of two, each row of the first meets one of the other.

    Raises:
      ValueError: a process has a part of a game.
    """
    P, games, seats = self.players, {}, []
    whole = P * group_size
    if own.start % whole or own.stop % whole or (policies > 1 and P > 2):
      raise ValueError(
        f'{type(self.task).__name__}: {P} players of {policies} policies; a '
        'process needs the prompts of whole games, and an opponent two players'
      )
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
          games[place] = self._episode((number, place), examples[n])
        seats[-1].append(Player(games[place], role))
    return seats

  def _episode(self, key, example):
    failure = None
    if isinstance(example, Opened):
      example, failure = example.origin, example.failure
    return Episode(
      key,
      example,
      self.players,
      failure=failure,
      rewrites=self.task.traits.rewrites,
      on_timeout=self.settings.on_turn_timeout,
      timeout_text=self._timeout_text,
    )

  def begins(self, example: Opened) -> bool:
    """Returns whether the row of an example has the first turn."""
    if self.players == 1:
      return True
    return example.failure is None and example.acting == example.role

  def check_begun(
    self, player: Player, seats: Sequence[tuple[Player, Opened]]
  ) -> None:
    """Checks the beginning of an episode, in which `player` has a turn.

    seats: all of its players, with their examples.

    Raises:
      RuntimeError: it begins in another way than its examples.
    """
    episode = player.episode
    for one, example in seats:
      if episode.failure is None and not episode.cut:
        self._check_start(one, example)
    if not episode.over() and not player.acts():
      acting = episode.said[-1]['acting']
      raise RuntimeError(
        f'{self._named(episode.example)} begins in two ways: with a turn of '
        f'player {acting} and of player {player.role}; `reset` must depend '
        'on nothing but its seed'
      )

  def _check_start(self, player, example):
    text = player.part(player.episode.beginning())
    if text != example.observation:
      raise RuntimeError(
        f'{self._named(player.episode.example)} begins in two ways: '
        f'{text!r:.300} and {example.observation!r:.300}; `reset` must depend '
        'on nothing but its seed'
      )

  def _named(self, example):
    name = type(self.task).__name__
    return (
      f'{name}: the episode of example {example.id}, seed {seed_of(example)},'
    )

  def act(self, player: Player, ids: Sequence[int]) -> bool:
    """Takes the turn that these ids are; returns whether the player had it."""
    if not player.acts():
      return False
    player.act(self._stop.text(np.array(ids, np.int32)), ids)
    return True

  def act_again(self, player: Player, ids: np.ndarray) -> None:
    """Takes a recorded turn."""
    player.act(self._stop.text(ids))

  def compare(self, player: Player, ids: np.ndarray) -> None:
    """Fails an episode that did not say these ids."""
    resumed.compare(player, ids, self._format)

  def most_observed(self, max_tokens: int) -> int:
    """The tokens of an observation at most, in rows of max_tokens."""
    return max_tokens if self.task.traits.rewrites else self._format.most

  def next_ids(
    self, player: Player, turns: int, finished: bool, room: int
  ) -> tuple[list[int] | None, bool]:
    """(ids before the player's next turn, None: it has none now; forgets).

    turns: that it has had; finished: the last one has ended by itself. room:
    tokens that its row still has.
    """
    if not player.acts():
      return None, False
    if turns >= self.max_turns:
      room = 0
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
