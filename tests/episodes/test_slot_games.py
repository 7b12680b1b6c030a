"""Games of two players: the rows of a plain loop, in any order of answers."""

import numpy as np
import pytest

from rl_jax.episodes.turns import TurnConfig
from rl_jax.types import PAD

N, G = 2, 4  # games, samples
TURNS = TurnConfig(max_turns=4, max_turn_tokens=2, max_observation_tokens=4)


def both(in_slots, Played, task, opponent=None, **more):
  """(the games, the same ones again); opponent: seed of weights."""
  played = Played(task, TURNS, num_prompts=N, size=24, opponent=opponent)
  return played, in_slots.InSlots(played, task, turns=TURNS, **more)


@pytest.fixture(name='rallies', scope='module')
def _rallies(bad, in_slots, Played):
  return both(in_slots, Played, bad.RallyTask())


def test_the_record_is_that_of_a_plain_loop(
  bad, rallies, in_slots, plain_episodes
):
  """E2, and E0 against the same games; some players were never asked."""
  played, found = rallies
  plain_episodes.check_plain(played, bad.RallyTask())
  in_slots.check_same(played, found, log_probs=True)
  turns = played.host.turn_BT.max(axis=1) + 1
  assert turns.min() == 0 and turns.max() > 2
  # Rows that wait for the other player hold no slot.
  assert found.episodes.metrics()['device/slots_share'] < 0.6


@pytest.fixture(name='against', scope='module')
def _against(bad, in_slots, Played):
  return both(in_slots, Played, bad.RallyTask(), opponent=2)


def test_an_opponent_has_its_weights_and_rows(
  bad, rallies, against, in_slots, plain_episodes
):
  """E2 against a plain loop; other weights play other games."""
  played, found = against
  plain_episodes.check_plain(played, bad.RallyTask())
  in_slots.check_same(played, found, log_probs=True)
  itself = rallies[1].host.response_BT
  assert (found.host.response_BT != itself).any(axis=1).sum() > N * G


@pytest.mark.parametrize('games', ['rallies', 'against'])
@pytest.mark.parametrize('seed', range(3))
def test_the_order_of_answers_changes_nothing(
  request, bad, in_slots, delayed_calls, games, seed
):
  """E0, also the log-probs: seeded delays, a few calls at a time."""
  played, first = request.getfixturevalue(games)

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.4 if timeout == 0.0 else timeout)

  def calls(make):
    return Ticking(make, seed=seed, most=(1, 3, 100)[seed])

  found = in_slots.InSlots(played, bad.RallyTask(), calls, turns=TURNS)
  in_slots.check_same(first, found, log_probs=True)
  order = [(r.sample, r.turn) for r in found.queue.made]
  assert len(set(order)) == len(order)  # nothing is asked twice
  assert seed == 0 or order != sorted(order, key=lambda one: (one[1], one[0]))


@pytest.mark.parametrize('games', ['rallies', 'against'])
@pytest.mark.parametrize('slots', [1, 3])
def test_fewer_slots_than_rows(request, bad, in_slots, games, slots):
  """E2: the number of slots is a shape of the program."""
  task, (played, _) = bad.RallyTask(), request.getfixturevalue(games)
  found = in_slots.InSlots(played, task, slots=slots, turns=TURNS)
  in_slots.check_same(played, found, log_probs=False)


@pytest.mark.parametrize('opponent', [None, 2])
def test_a_first_token_may_end_a_turn(
  bad, in_slots, Played, plain_episodes, opponent
):
  """E2: others have their first turn before all first tokens are taken."""
  turns = TurnConfig(max_turns=4, max_turn_tokens=1, max_observation_tokens=4)
  task, more = bad.RallyTask(), {'size': 24, 'opponent': opponent}
  played = Played(task, turns, num_prompts=N, **more)
  plain_episodes.check_plain(played, task)
  found = in_slots.InSlots(played, task, turns=turns, slots=3)
  in_slots.check_same(played, found, log_probs=False)


@pytest.mark.parametrize('opponent', [None, 2])
def test_the_second_player_may_begin(
  bad, in_slots, Played, plain_episodes, opponent
):
  """E2; the first turn is one of either player, by the prompt."""
  task = bad.RallyTask(begins='seed')
  played, found = both(in_slots, Played, task, opponent)
  plain_episodes.check_plain(played, task)
  first = {example.acting for example in played.examples}
  assert first == {0, 1}
  for row, kinds_T in enumerate(found.host.kind_BT):
    example = played.examples[row // G]
    assert example.acting != example.role or kinds_T[0] != PAD


@pytest.mark.parametrize('opponent', [None, 2])
def test_failures_cost_their_own_games(
  bad, in_slots, Played, plain_episodes, opponent
):
  """Steps that raise, and a prompt of which no game begins."""
  task = bad.RallyTask(failing={'c': 'raise', 'd': 'raise'}, unable=(1,))
  played, found = both(in_slots, Played, task, opponent)
  failed = [one.error is not None for one in played.outcomes]
  assert all(failed[2 * G :]) and 0 < sum(failed[: 2 * G]) < 2 * G
  plain_episodes.check_plain(played, task)
  assert (found.host.kind_BT[2 * G :] == PAD).all()


def test_another_first_player_is_an_error(bad, rallies, in_slots):
  """The message names task, example and both players."""
  with pytest.raises(
    RuntimeError, match='RallyTask: the episode of .* turn of player 1 and of '
  ):
    in_slots.InSlots(rallies[0], bad.RallyTask(begins='second'), turns=TURNS)


def test_a_round_that_is_repeated_makes_no_call(
  bad, rallies, in_slots, tmp_path
):
  """E0: each answer is in the journal, under the name of its game."""
  task, played = bad.RallyTask(), rallies[0]
  first = in_slots.InSlots(played, task, turns=TURNS, workdir=tmp_path)

  def refuses(make):
    def no_call(request):
      raise AssertionError(f'{request.key} is called again')

    return in_slots.CallsHere(no_call)

  again = in_slots.InSlots(played, task, refuses, turns=TURNS, workdir=tmp_path)
  in_slots.check_same(first, again, log_probs=True)
  np.testing.assert_array_equal(
    rallies[1].host.logp_behaviour_BT, again.host.logp_behaviour_BT
  )
