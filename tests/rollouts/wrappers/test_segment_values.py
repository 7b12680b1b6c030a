"""SPO's cuts, the branches from them, and a whole iteration."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.row_inputs import NO_CUT
from rl_jax.rollouts.wrappers.segment_values import SegmentValues
from rl_jax.types import PAD, POLICY

# Uncertain: 1, 3, 5, 6, 8; cuts before them: 0, 2, 4, 5, 7.
PROBS = np.log([[0.99, 0.5, 0.95, 0.3, 0.99, 0.6, 0.2, 0.99, 0.4, 0.97]])


@pytest.mark.parametrize(
  'interval, max_cuts, expected',
  [
    (1, 6, [0, 2, 4, 5, 7, NO_CUT]),
    (2, 4, [0, 4, 7, NO_CUT]),
    (1, 2, [0, 2]),
    # None: room for 10 uncertain tokens.
    (1, None, [0, 2, 4, 5, 7] + [NO_CUT] * 5),
    (3, None, [0, 5, NO_CUT, NO_CUT]),
  ],
)
def test_cuts_by_hand(interval, max_cuts, expected):
  """Every n-th uncertain token, at most max_cuts."""
  piece = SegmentValues(interval=interval, max_cuts=max_cuts)
  found = piece._cut_points(PROBS.astype(np.float32), np.array([10]))
  assert found.tolist() == [expected]


def test_tokens_behind_the_end_are_no_cuts():
  """The response has 4 tokens; log-prob 0 follows them, or anything."""
  piece = SegmentValues(interval=1, max_cuts=3)
  found = piece._cut_points(PROBS.astype(np.float32), np.array([4]))
  assert found.tolist() == [[0, 2, NO_CUT]]
  first = piece._cut_points(np.full((1, 2), -1.0, np.float32), np.array([2]))
  assert first.tolist() == [[-1, 0, NO_CUT]]


def rows(toy):
  """Two prompts, two rows each, of 3 tokens."""
  logp = np.log(np.array([[0.5, 0.95, 0.2]] * 4, np.float32))
  return toy.trajectories(
    np.ones((4, 3)),
    group_size=2,
    response_BT=np.arange(1, 13).reshape(4, 3),
    length_B=np.full(4, 3, np.int32),
    finished_B=np.ones(4, bool),
    logp_behaviour_BT=logp,
    reward_B=np.ones(4),
    rewards={'outcome': np.ones(4)},
  )


def test_branches_keep_the_tokens_up_to_the_cut(toy):
  """Cuts 1, -1, none, 0; two copies each, with their own serials."""
  cut_B = jnp.array([1, -1, NO_CUT, 0])
  found = SegmentValues(samples=2).branches(rows(toy), cut_B, jnp.int32(7))
  assert found.group_size == 4
  np.testing.assert_array_equal(
    found.response_BT[::2], [[1, 2, 0], [0, 0, 0], [7, 8, 9], [10, 0, 0]]
  )
  np.testing.assert_array_equal(found.response_BT[::2], found.response_BT[1::2])
  np.testing.assert_array_equal(found.length_B[::2], [2, 0, 3, 1])
  np.testing.assert_array_equal(found.finished_B[::2], [0, 0, 1, 0])
  np.testing.assert_array_equal(
    found.kind_BT == POLICY, np.arange(3) < np.asarray(found.length_B)[:, None]
  )
  logp = np.where(found.kind_BT == POLICY, np.log([0.5, 0.95, 0.2]), 0.0)
  np.testing.assert_allclose(found.logp_behaviour_BT, logp, rtol=1e-6)
  assert PAD != POLICY and not found.rewards
  assert found.row_id_B2[:, 0].tolist() == [7] * 4 + [8] * 4
  assert found.row_id_B2[:, 1].tolist() == [0, 1, 2, 3] * 2


class Rewarded:
  """Continuations with given rewards, a list [B, samples] for each round."""

  def __init__(self, rounds):
    self.rounds, self.next_serial = list(rounds), 0

  def run(self, function, *arrays):
    """Eagerly."""
    return function(*arrays)

  def go_on(self, traj, done):
    """The next rewards."""
    del traj, done
    return Done(np.asarray(self.rounds.pop(0), np.float32))


class Done:
  """A round: rewards, and what the sampler reported."""

  def __init__(self, reward, responses=None):
    self.reward_NG, self.responses = reward, responses


def test_values_are_means_of_the_continuations(toy):
  """Cuts -1 and 1 of every row; NaN is a failed verification: left out, and a
  row without any verified continuation weighs nothing."""
  traj, nan = rows(toy), np.nan
  responses = {
    'logp': np.asarray(traj.logp_behaviour_BT),
    'length': np.asarray(traj.length_B),
  }
  sampler = Rewarded(
    [
      [[1, 0], [1, 1], [0, 0], [nan, 1]],
      [[0, 0], [1, 0], [nan, nan], [1, 1]],
    ]
  )
  piece = SegmentValues(samples=2, interval=1, max_cuts=3)
  found, rounds = piece.extend(traj, Done(None, responses), sampler)
  assert len(rounds) == 2 and not sampler.rounds
  assert found.extras['cut_BC'].tolist() == [[-1, 1, NO_CUT]] * 4
  np.testing.assert_array_equal(
    found.extras['cut_value_BC'][:, :2], [[0.5, 0], [1, 0.5], [0, 0], [1, 1]]
  )
  np.testing.assert_array_equal(found.weight_B, [1, 1, 0, 1])
  np.testing.assert_array_equal(found.valid_B, [1, 1, 0, 1])
  # Trained are the tokens that are less likely than .9.
  np.testing.assert_array_equal(found.mask_BT, [[1, 0, 1]] * 4)
