"""Rounds of Kuhn poker, by hand."""

import pytest

from rl_jax.worlds import KuhnMatch
from rl_jax.worlds.kuhn_match import CARDS


def begun(rounds=1, index=0):
  task = KuhnMatch(rounds=rounds)
  example = task.example('train', index)
  episode = task.make(example)
  first = episode.reset(example.meta['seed'])
  return episode, first


def cards(observations):
  """The card of each player, by the last round that was dealt."""
  return [text.rpartition('your card is ')[2][0] for text in observations]


def box(name):
  return f'I think so. \\boxed{{{name}}}'


@pytest.mark.parametrize(
  ('actions', 'size', 'folded'),
  [
    (('check', 'check'), 1, None),
    (('bet', 'call'), 2, None),
    (('check', 'bet', 'call'), 2, None),
    (('bet', 'fold'), 1, 1),
    (('check', 'bet', 'fold'), 1, 0),
  ],
)
def test_every_course_of_a_round(actions, size, folded):
  """The higher card wins, or who did not fold; chips of both add up to 0."""
  episode, first = begun()
  held = cards(first.observation)
  best = max(held, key=CARDS.index)
  winner = held.index(best) if folded is None else 1 - folded
  for action in actions:
    reply = episode.step(box(action))
  assert reply.done and episode._chips[winner] == size
  assert sum(episode._chips) == 0
  assert reply.rewards[winner] == {'outcome': 1.0, 'reward': 1.0, 'invalid': 0}
  assert reply.rewards[1 - winner]['reward'] == -1.0


def test_players_begin_in_turn_and_hear_each_other():
  episode, first = begun(rounds=2)
  assert (
    first.acting == 0 and 'Your actions: check or bet' in (first.observation[0])
  )
  assert 'Your actions' not in first.observation[1]
  reply = episode.step(box('[Bet]'))
  assert reply.acting == 1 and reply.observation[0] == ''
  assert reply.observation[1] == (
    'Player 0: bet.\nYour actions: call or fold.\n'
  )
  reply = episode.step(box('fold'))
  assert reply.acting == 1 and not reply.done  # the second round
  assert 'Player 0 wins 1.\nRound 2: your card is' in reply.observation[0]


@pytest.mark.parametrize('text', ['bet', box('call'), box('raise'), ''])
def test_an_illegal_turn_ends_the_game(text):
  """-1.5 for the player, 0.5 for the other one."""
  episode, _ = begun()
  reply = episode.step(text)
  assert reply.done
  assert reply.rewards == (
    {'outcome': 0.0, 'reward': -1.5, 'invalid': 1.0},
    {'outcome': 1.0, 'reward': 0.5, 'invalid': 0.0},
  )


def test_a_draw_is_worth_nothing():
  """Each wins a round: the first player folds, then the second one."""
  episode, _ = begun(rounds=2)
  for action in ('check', 'bet', 'fold', 'check', 'bet', 'fold'):
    reply = episode.step(box(action))
  assert reply.done and [one['reward'] for one in reply.rewards] == [0.0, 0.0]


def test_the_seed_decides_the_cards():
  """The same example has the same game; all six deals come up."""
  dealt = [tuple(cards(begun(index=n)[1].observation)) for n in range(40)]
  assert dealt == [
    tuple(cards(begun(index=n)[1].observation)) for n in range(40)
  ]
  assert len(set(dealt)) == 6
