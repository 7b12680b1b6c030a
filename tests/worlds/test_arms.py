"""Bandits in one context."""

import numpy as np
import pytest

from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import Arms, arms


def test_wins_and_regret_of_an_episode():
  """From the table: mean of wins, of chances below the best."""
  task = Arms(arms=3, pulls=5, keep=2)
  example = task.example('train', 1)
  chance_TK, win_TK = task.table(seed_of(example))
  np.testing.assert_array_equal(chance_TK[0], chance_TK[1])
  np.testing.assert_array_equal(chance_TK[2], chance_TK[3])
  assert (chance_TK[1] != chance_TK[2]).any()
  walk, total = task.make(example), []
  assert walk.reset(seed_of(example)).observation == '>'
  for pull, action in enumerate(('a', 'c', 'x', 'b', 'b')):
    reply = walk.step(action)
    arm = 'abc'.find(action)
    win = win_TK[pull, arm] if arm >= 0 else 0
    chance = chance_TK[pull, arm] if arm >= 0 else 0
    assert reply.observation == (f'{win}>' if arm >= 0 else '?>')
    best = chance_TK[pull].max()
    expected = [win / 5, (best - chance) / 5000, (chance == best) / 5]
    found = [reply.rewards[x] for x in ('outcome', 'regret', 'best')]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert reply.done == (pull == 4)
    total.append(reply.rewards['outcome'])
  assert walk.reset(seed_of(example)).observation == '>'
  again = [
    walk.step(action).rewards['outcome'] for action in ('a', 'c', 'x', 'b', 'b')
  ]
  assert again == total  # the same seed wins with the same pulls


def test_nothing_is_told():
  """The rewards are the same."""
  task = Arms(observed='nothing')
  example = task.example('train', 0)
  told, silent = Arms().make(example), task.make(example)
  for walk in (told, silent):
    walk.reset(seed_of(example))
  for action in 'abcd':
    one, other = told.step(action), silent.step(action)
    assert one.rewards == other.rewards and other.observation == '?>'


def test_ucb_by_hand():
  """t = 10, n = 4: bonus sqrt(0.5 ln 10 / 4) = 0.53649."""
  pulled, won = np.array([4.0, 6.0]), np.array([1.0, 2.0])
  assert np.sqrt(0.5 * np.log(10) / 4) == pytest.approx(0.53649, abs=1e-5)
  # 0.25 + 0.5365 against 1/3 + 0.4380.
  assert arms.ucb(pulled, won) == 0
  assert arms.ucb(pulled, won, alpha=0.0) == 1
  assert arms.ucb(np.array([3.0, 0.0]), np.array([3.0, 0.0])) == 1


def test_players_beat_chance_where_arms_stay():
  """And nobody does where they are new at every pull."""
  rng = np.random.default_rng(0)

  def thompson(pulled, won):
    return arms.thompson(pulled, won, rng)

  def guess(pulled, won):
    return int(rng.integers(4))

  def mean(task, player):
    found = [
      arms.played(task, task.example('train', n), player)['outcome']
      for n in range(150)
    ]
    return np.mean(found)

  stays, changes = Arms(), Arms(keep=1)
  assert mean(stays, thompson) > 0.6 and mean(stays, arms.ucb) > 0.6
  for player in (thompson, guess):
    assert mean(changes, player) == pytest.approx(0.5, abs=0.04)
