"""Episodes that continue inside a turn."""

import numpy as np
import pytest

from rl_jax.episodes.resumed import Recorded
from rl_jax.episodes.turns import TurnConfig
from rl_jax.types import ENVIRONMENT, PAD, POLICY
from rl_jax.worlds import KeyDoor

TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)


@pytest.fixture(scope='module', name='played')
def _played(Played):
  """Rows of several turns."""
  return Played(KeyDoor())


def cut(played, turn):
  """The rows without what was done in `turn` and after it; row 1 is out."""
  host = played.host
  kept_BT = (host.turn_BT < turn) | (host.kind_BT == ENVIRONMENT)
  kept_BT &= (host.turn_BT <= turn) & (host.kind_BT != PAD)
  kept_BT[1] = False
  live_B = np.arange(len(kept_BT)) != 1
  return kept_BT, live_B


def inside(played, change=lambda ids_BT: ids_BT):
  """(arrays of trajectories, Recorded): rows that continue in turn 2."""
  host = played.host
  kept_BT, live_B = cut(played, 2)
  recorded = Recorded(
    response_BT=change(np.where(kept_BT, host.response_BT, 0)),
    kind_BT=np.where(kept_BT, host.kind_BT, PAD),
    turn_BT=np.where(kept_BT, host.turn_BT, -1),
    live_B=live_B,
  )
  return {
    'response_BT': recorded.response_BT.astype(np.int32),
    'kind_BT': recorded.kind_BT.astype(np.int32),
    'turn_BT': recorded.turn_BT.astype(np.int32),
    'length_B': kept_BT.sum(axis=1).astype(np.int32),
    'finished_B': ~live_B,
    'logp_behaviour_BT': np.where(kept_BT, host.logp_behaviour_BT, 0.0),
  }, recorded


@pytest.fixture(name='go_on', params=['at once', 'late'])
def _go_on(request, in_slots, delayed_calls):
  """(played, change) -> (the rows played on, the outcomes), in each way."""

  def go_on(played, *change):
    begun = inside(played, *change)
    calls = in_slots.CallsHere
    if request.param == 'late':  # turns end before they are repeated

      def calls(make):
        return delayed_calls.DelayedCalls(make, 1, lambda _: 1.0)

    found = in_slots.InSlots(played, KeyDoor(), calls, inside=begun)
    return found.host, found.outcomes

  return go_on


def test_going_on_is_playing_through(played, go_on):
  """E2: rows cut before their third action become the rows that they were."""
  assert (played.host.turn_BT.max(axis=1) >= 2).all()
  found, outcomes = go_on(played)
  others = np.arange(len(outcomes)) != 1
  for name in ('response_BT', 'kind_BT', 'turn_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(
      getattr(found, name)[others], getattr(played.host, name)[others], name
    )
  np.testing.assert_allclose(
    found.logp_behaviour_BT[others],
    played.host.logp_behaviour_BT[others],
    atol=1e-5,
  )
  np.testing.assert_array_equal(
    found.turns.reward_BK[others], played.host.turns.reward_BK[others]
  )
  assert found.length_B[1] == 0 and not found.mask_BT[1].any()
  for row in np.flatnonzero(others):
    assert outcomes[row] == played.outcomes[row]


def test_an_episode_that_says_something_else_fails(played, go_on):
  """Row 0 remembers another observation: only it takes no part."""
  host = played.host
  place = np.flatnonzero(host.kind_BT[0] == ENVIRONMENT)[0]

  def change(ids_BT):
    ids_BT = ids_BT.copy()
    ids_BT[0, place] += 1
    return ids_BT

  _, outcomes = go_on(played, change)
  assert 'mismatch' in outcomes[0].error
  assert all(outcome.error is None for outcome in outcomes[1:])


def test_the_open_turn_by_hand():
  """Turn 1 holds its observation and an inserted token; row 1 is not live."""
  recorded = Recorded(
    response_BT=np.array([[5, 6, 7, 8, 0]] * 2),
    kind_BT=np.array([[POLICY, ENVIRONMENT, ENVIRONMENT, 3, PAD]] * 2),
    turn_BT=np.array([[0, 1, 1, 1, -1]] * 2),
    live_B=np.array([True, False]),
  )
  assert recorded.open_B.tolist() == [1, 0]
  assert recorded.begun_B.tolist() == [1, 0]
  assert recorded.given_B.tolist() == [3, 0]
  assert recorded.ids(0, 1, observed=True).tolist() == [6, 7]
  assert recorded.ids(0, 1, observed=False).tolist() == [8]
