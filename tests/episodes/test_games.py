"""Games of two players: coupled rows, opponents, failures."""

import dataclasses

import numpy as np
import pytest

from rl_jax.episodes.turns import TurnConfig, check
from rl_jax.method import Method
from rl_jax.pieces.policies import CopyEvery, Frozen
from rl_jax.rollouts.wrappers import Opponent
from rl_jax.tasks.environments import several
from rl_jax.types import ENVIRONMENT, PAD, POLICY
from rl_jax.worlds import KeyDoor

N, G = 2, 4  # games, samples
TURNS = TurnConfig(max_turns=4, max_turn_tokens=2, max_observation_tokens=4)


def play(Played, task, **options):
  return Played(task, TURNS, num_prompts=N, size=24, **options)


@pytest.fixture(name='rallies', scope='module')
def _rallies(bad, Played):
  """The policy against itself, without failures."""
  return play(Played, bad.RallyTask())


def pairs():
  """Rows of the two players of each game of one policy."""
  starts = [2 * n * G + g for n in range(N) for g in range(G)]
  return [(row, row + G) for row in starts]


def test_players_hear_each_other(rallies):
  """Each row has its own actions as POLICY, and what it hears between them."""
  shown, kinds = rallies.episodes.shown(), rallies.host.kind_BT
  turns, lengths = rallies.host.turn_BT, []
  for first, second in pairs():
    told = [shown(row) for row in (first, second)]
    assert [one['role'] for one in told] == [0, 1]
    actions = [[t['action'] for t in one['turns']] for one in told]
    lengths.append(sum(map(len, actions)))
    mover, heard, left = 0, [[], []], [list(a) for a in actions]
    texts = ['', '']
    while any(left):
      action = left[mover].pop(0)
      heard[mover].append(texts[mover])
      texts[mover] = 'a' if action[:1] == 'b' else ''
      texts[1 - mover] += f'g{action}'
      mover = mover if action[:1] == 'b' else 1 - mover
    for row, role in ((first, 0), (second, 1)):
      assert rallies.turn_texts(row, POLICY) == actions[role]
      read = rallies.turn_texts(row, ENVIRONMENT)
      assert read == [text[:4] for text in heard[role]]
      np.testing.assert_array_equal(turns[row] == -1, kinds[row] == PAD)
  assert min(lengths) == 1 and max(lengths) > 3


def test_what_ends_a_game_counts_for_both(rallies):
  """Zero-sum; also for a player that the game never asked."""
  reward_B = rallies.host.turns.reward_BK.sum(axis=1)
  totals = [o.components['outcome'] for o in rallies.outcomes]
  np.testing.assert_array_equal(reward_B, totals)
  silent = 0
  for first, second in pairs():
    assert reward_B[first] == -reward_B[second]
    assert rallies.host.finished_B[first] == rallies.host.finished_B[second]
    silent += (rallies.host.kind_BT[second] == PAD).all()
    end = rallies.episodes.shown()(first)['end']
    assert (abs(reward_B[first]) == 1) == (end == 'done')
  assert silent > 0
  roles = np.repeat([0, 1] * N, G)
  np.testing.assert_array_equal(rallies.host.extras['role_B'], roles)


@pytest.mark.slow
def test_a_failure_costs_its_game_alone(bad, rallies, Played):
  """E0: both rows of the game, in two workers, and no row of another."""
  task = bad.RallyTask(failing={'c': 'exit', 'd': 'raise'})
  played = play(Played, task, workers=2)
  shown, failed = rallies.episodes.shown(), []
  for rows in pairs():
    words = [t['action'] for row in rows for t in shown(row)['turns']]
    failed.append(bool({'c', 'd'} & {word[:1] for word in words}))
    for row in rows:
      assert (played.outcomes[row].error is not None) == failed[-1]
      if not failed[-1]:
        assert played.outcomes[row] == rallies.outcomes[row]
        np.testing.assert_array_equal(
          played.host.response_BT[row], rallies.host.response_BT[row]
        )
  assert 0 < sum(failed) < len(failed)


@pytest.mark.slow
def test_an_opponent_plays_the_other_side(bad, Played):
  """Greedy: A's games as first player against B are B's as second against A."""
  ours = play(Played, bad.RallyTask(), seed=1, opponent=2, greedy=True)
  theirs = play(Played, bad.RallyTask(), seed=2, opponent=1, greedy=True)
  total_B = [x.host.turns.reward_BK.sum(axis=1) for x in (ours, theirs)]
  for n in range(N):
    first, second = 2 * n * G, (2 * n + 1) * G
    mine = ours.episodes.shown()(first)
    other = theirs.episodes.shown()(second)
    assert mine['end'] == other['end']
    assert total_B[0][first] == -total_B[1][second]
    for one, two in ((mine, other), (other, mine)):
      heard = [t['observation'] for t in one['turns'][1 - one['role'] :]]
      if one is other:
        heard[0] = heard[0][1:]  # the letter of the beginning
      heard.append(one['last_observation'])
      said = ''.join(f'g{t["action"]}' for t in two['turns'])
      # 'a' is what a player hears of its own action.
      assert ''.join(heard).replace('a', '') == said.replace('a', '')


def test_rules_keep_the_opponent_and_settings_are_checked(bad):
  """A multiple of players; two of them; no part of a mixture."""
  rule = CopyEvery(iterations=3)
  assert Opponent(rule=rule).policies == {'opponent': rule}
  task, two = bad.RallyTask(), Opponent(rule=Frozen())
  method = Method(rollout=two)
  settings = {'turns': TURNS, 'slots': None, 'num_prompts': 4}
  settings |= {'speculative': None}
  rollout = type('Rollout', (), settings)()
  check(task, rollout, method)
  rollout.num_prompts = 3
  with pytest.raises(ValueError, match='num_prompts = 3.* 2 players'):
    check(task, rollout, method)
  with pytest.raises(ValueError, match='Opponent plays games of two'):
    check(KeyDoor(), rollout, method)
  with pytest.raises(ValueError, match='sets: a game of several players'):
    several.check([task, dataclasses.replace(task)], 'sets')
