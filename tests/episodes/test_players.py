"""Episodes from the place of a player."""

from rl_jax.episodes import players
from rl_jax.episodes.players import PARTNER, Episode, Player
from rl_jax.tasks.base import Example


def played(players, said, actions, roles):
  """An episode with these observations, actions and who acted."""
  replies = [{'observation': text} for text in said]
  return Episode((0, 0), Example('', '', 0), players, replies, actions, roles)


def test_what_was_done_and_answered():
  """The beginning is of the prompt; the last action may have no answer."""
  episode = played(1, ['begin', 'one', 'two'], ['a', 'b'], [0, 0])
  assert Player(episode).exchanged() == [('a', 'one'), ('b', 'two')]
  cut = played(1, ['begin', 'one'], ['a', 'b'], [0, 0])
  assert Player(cut).exchanged() == [('a', 'one'), ('b', '')]
  assert Player(played(1, ['begin'], [], [])).exchanged() == []


def test_a_player_hears_what_others_and_partners_cause():
  """Up to its own next action."""
  said = [('x0', 'y0'), ('x1', 'y1'), ('x2', 'y2'), ('x3', 'y3')]
  game = played(2, said, ['a', 'b', 'c'], [0, 1, 0])
  assert Player(game, 0).exchanged() == [('a', 'x1x2'), ('c', 'x3')]
  assert Player(game, 1).exchanged() == [('b', 'y2y3')]
  asked = played(1, ['0', '1', '2', '3'], ['a', 'p', 'b'], [0, PARTNER, 0])
  assert Player(asked).exchanged() == [('a', '12'), ('b', '3')]


def test_an_invalid_episode_is_logged(monkeypatch):
  """It costs a row, which would else be counted in silence."""
  said = []
  monkeypatch.setattr(
    players.logging, 'log_first_n', lambda *args: said.append(args)
  )
  one = played(1, ['begin'], [], [])
  one.fail('the observation: no letter')
  assert one.failure == ('invalid', 'the observation: no letter')
  ((_, text, _, *values),) = said
  assert text % tuple(values) == (
    'the episode of example 0 is invalid: the observation: no letter'
  )
