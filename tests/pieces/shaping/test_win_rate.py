"""Win rates inside a group."""

import numpy as np

from rl_jax.pieces.roles import CreditContext
from rl_jax.pieces.shaping import WinRate

# Rock, paper, scissors: P(row beats column).
CYCLE = [[0.5, 0, 1], [1, 0.5, 0], [0, 1, 0.5]]


def rates(
  toy,
  reward,
  group_size=3,
  valid=None,
  opponent=None,
  beats=None,
  **fields,
):
  reward = np.asarray(reward, np.float32)
  more = {} if valid is None else {'valid_B': np.asarray(valid, np.float32)}
  extras = {'opponent_B': opponent, 'beats_BG': beats}
  more['extras'] = {
    k: np.asarray(x, np.float32) for k, x in extras.items() if x is not None
  }
  traj = toy.trajectories(
    np.ones((len(reward), 1)), group_size=group_size, **more
  )
  return np.asarray(
    WinRate(**fields)(CreditContext(traj.reward_B + reward, traj)).value
  )


def test_by_hand(toy):
  """A total order: 1, 1/2, 0; ties: 1/2; only the order counts."""
  np.testing.assert_allclose(rates(toy, [3.0, 2.0, 1.0]), [1.0, 0.5, 0.0])
  np.testing.assert_allclose(rates(toy, [9.0, 2.0, 1.0]), [1.0, 0.5, 0.0])
  np.testing.assert_allclose(rates(toy, [1.0, 1.0, 0.0]), [0.75, 0.75, 0.0])


def test_probabilities_by_hand(toy):
  """sigmoid(gap / 2), the row itself counted as 1/2."""
  found = rates(toy, [1.0, 0.0], group_size=2, temperature=0.5, with_self=1.0)
  p = 1 / (1 + np.exp(-2.0))
  np.testing.assert_allclose(found, [(p + 0.5) / 2, (1.5 - p) / 2], rtol=1e-6)


def test_sum_is_half_the_group(toy):
  for temperature in (None, 0.3):
    found = rates(toy, [0.3, 2.0, -1.0], temperature=temperature)
    np.testing.assert_allclose(found.sum(), 1.5, rtol=1e-6)


def test_invalid_rows_beat_nobody(toy):
  found = rates(toy, [3.0, 2.0, 1.0], valid=[0, 1, 1])
  np.testing.assert_allclose(found[1:], [1.0, 0.0])
  alone = rates(toy, [3.0, 2.0, 1.0], valid=[0, 0, 1])
  np.testing.assert_allclose(alone[2], 0.5)


def test_rivals_may_be_opponents_alone(toy):
  """Two own samples against two of an opponent, 1/2 taken off."""
  found = rates(
    toy,
    [3.0, 2.0, 1.0, 2.0],
    group_size=4,
    opponent=[0, 0, 1, 1],
    against='opponent',
    center=0.5,
  )
  np.testing.assert_allclose(found[:2], [0.5, 0.25])


def test_verdicts_take_the_place_of_rewards(toy):
  """E1: one of each is even, two rocks of three lose to paper: SPO's checks.

  A reward would need r > s > p > r. With the row itself (SPPO) as 1/2.
  """
  cycle = rates(toy, [9.0, 1.0, 5.0], beats=CYCLE)
  np.testing.assert_allclose(cycle, 0.5)
  beats = [[0.5, 0.5, 1], [0.5, 0.5, 1], [0, 0, 0.5]]
  found = rates(toy, [0.0, 0.0, 0.0], beats=beats, temperature=0.3)
  np.testing.assert_allclose(found, [0.75, 0.75, 0.0])
  found = rates(toy, [0.0, 0.0, 0.0], beats=beats, with_self=1.0)
  np.testing.assert_allclose(found, [2 / 3, 2 / 3, 1 / 6], rtol=1e-6)
  found = rates(toy, [0.0] * 3, beats=beats, valid=[1, 0, 1])
  np.testing.assert_allclose(found, [1.0, 0.75, 0.0])


def test_who_never_beats_the_opponent_has_nothing(toy):
  """E0: P = 0 is -1/2 after the centre, whatever the rewards are."""
  beats = [[0.5, 0.5, 0, 0]] * 2 + [[1, 1, 0.5, 0.5]] * 2
  found = rates(
    toy,
    [3.0, 3.0, 1.0, 1.0],
    group_size=4,
    opponent=[0, 0, 1, 1],
    beats=beats,
    against='opponent',
    center=0.5,
  )
  np.testing.assert_array_equal(found[:2], [-0.5, -0.5])
