r"""Rounds of Kuhn poker between two players who write \boxed{bet}."""

from collections.abc import Mapping
import dataclasses
import re

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

CARDS = 'JQK'
_BOX = re.compile(r'\\boxed\{([^{}]*)\}')
# What has been done in the round -> what may be done now.
_LEGAL: Mapping[tuple[str, ...], tuple[str, str]] = {
  (): ('check', 'bet'),
  ('check',): ('check', 'bet'),
  ('bet',): ('call', 'fold'),
  ('check', 'bet'): ('call', 'fold'),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class KuhnMatch(EnvironmentTask):
  r"""Rounds of Kuhn poker; the player with more chips at the end wins.

  A round has an ante of 1 and three cards, of which both players hold one; the
  players begin in turn. An action is the last \boxed{...} of a turn, in which
  brackets and capitals do not count. Both places of a game are played, each by
  its own group.
  Components of each player: `reward`, 1 for the winner, -1 for the other, 0 for
  a draw; `outcome`, 1 for the winner; `invalid`, 1 for who made a turn without
  a legal action, which ends the game: `penalty` for that player, `bonus` for
  the other one.
  Source: KuhnPoker-v1 of spiral-rl/spiral (five rounds, -1.5 and 0.5), in other
  words.
  """

  rounds: int = ranged(5, 1)
  penalty: float = -1.5
  bonus: float = 0.5
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)
  traits = TaskTraits(players=2, chat=True, role='user', global_random=False)

  def make(self, example: Example) -> 'Match':
    """A game that has not started."""
    return Match(self, seed_of(example))


class Match(Environment):
  """One game."""

  def __init__(self, task: KuhnMatch, seed: int):
    self._task, self._seed = task, seed
    self._chips, self._round = [0, 0], 0
    self._done: tuple[str, ...] = ()
    self._heard = ['', '']

  def reset(self, seed: int) -> Reply:
    """The rules and the first cards."""
    self._seed = seed
    for player in (0, 1):
      self._heard[player] = (
        'You play a two-player zero-sum game, Kuhn poker, of '
        f'{self._task.rounds} rounds. You are player {player}. The cards are '
        'J, Q and K, of which each player holds one; an ante is 1 chip, a bet '
        'one more. The player with more chips after all rounds wins. Reason '
        'step by step, then write your action as \\boxed{action}.\n'
      )
    self._deal()
    return self._reply()

  def step(self, action: str) -> Reply:
    """The action of the player whose turn it is."""
    player, found = self._acting, _BOX.findall(action)
    name = found[-1].strip(' []\n').lower() if found else ''
    if name not in _LEGAL[self._done]:
      own, other = self._task.penalty, self._task.bonus
      totals = (own, other) if player == 0 else (other, own)
      return self._end(totals, player)
    self._done = (*self._done, name)
    self._tell(1 - player, f'Player {player}: {name}.')
    if self._is_over():
      self._pay()
      self._round += 1
      if self._round == self._task.rounds:
        gap = self._chips[0] - self._chips[1]
        sign = float((gap > 0) - (gap < 0))
        return self._end((sign, -sign), None)
      self._deal()
    else:
      self._ask()
    return self._reply()

  @property
  def _acting(self):
    """Players begin in turn, and act in turn."""
    return (self._round + len(self._done)) % 2

  def _is_over(self):
    return self._done[-1] in ('call', 'fold') or self._done == (
      'check',
      'check',
    )

  def _deal(self):
    self._done = ()
    stream = draws.Draws('kuhn', self._seed, self._round)
    left = list(CARDS)
    self._cards = [left.pop(stream.below(len(left))) for _ in range(2)]
    for player in (0, 1):
      self._tell(
        player, f'Round {self._round + 1}: your card is {self._cards[player]}.'
      )
    self._ask()

  def _ask(self):
    names = ' or '.join(_LEGAL[self._done])
    self._tell(self._acting, f'Your actions: {names}.')

  def _pay(self):
    """Moves the chips of the round."""
    last = (self._round + len(self._done) - 1) % 2
    if self._done[-1] == 'fold':
      winner, size = 1 - last, 1
    else:
      best = max(self._cards, key=CARDS.index)
      winner, size = self._cards.index(best), 1 + (self._done[-1] == 'call')
    self._chips[winner] += size
    self._chips[1 - winner] -= size
    for player in (0, 1):
      self._tell(player, f'Player {winner} wins {size}.')

  def _tell(self, player, line):
    self._heard[player] += f'{line}\n'

  def _reply(self):
    heard, self._heard = tuple(self._heard), ['', '']
    none = {name: 0.0 for name in ('outcome', 'reward', 'invalid')}
    return Reply(heard, rewards=(none, dict(none)), acting=self._acting)

  def _end(self, totals, invalid):
    def components(player) -> Mapping[str, float]:
      return {
        base.OUTCOME: float(totals[player] > 0),
        'reward': float(totals[player]),
        'invalid': float(player == invalid),
      }

    return Reply(
      ('', ''),
      rewards=(components(0), components(1)),
      done=True,
    )
