"""Pair makers: rewards or labels -> edges."""

import numpy as np
import pytest

from rl_jax.pieces.ops.edges import live_weights
from rl_jax.pieces.preferences import (
  Adjacent,
  AgainstOpponent,
  AllPairs,
  BestWorst,
  OutcomeThenProcess,
  RecordedPairs,
  Rejection,
)
from rl_jax.pieces.roles import CreditContext


def edges_of(maker, toy, reward, group_size=4, **fields):
  """(win, lose, margin) of the live edges of each group."""
  reward = np.asarray(reward, np.float32)
  traj = toy.trajectories(
    np.ones((len(reward), 2)), group_size=group_size, **fields
  )
  traj = traj.replace(
    edges=maker(CreditContext(traj.reward_B * 0 + reward, traj)).value
  )
  live_NE = np.asarray(live_weights(traj)) != 0
  e = traj.edges
  return [
    [
      (int(e.win_NE[n, i]), int(e.lose_NE[n, i]), float(e.margin_NE[n, i]))
      for i in np.flatnonzero(live_NE[n])
    ]
    for n in range(len(live_NE))
  ]


SCORES = [0.25, 1.0, 0.5, 0.0]


@pytest.mark.parametrize(
  'maker, expected',
  [
    (BestWorst(), [(1, 3, 0.0)]),
    (BestWorst(margin_scale=2.0), [(1, 3, 2.0)]),
    (BestWorst(min_gap=1.0), []),
    (Adjacent(margin_scale=1.0), [(1, 2, 0.5), (2, 0, 0.25), (0, 3, 0.25)]),
    (
      AllPairs(),
      [(1, 0, 0), (2, 0, 0), (0, 3, 0), (1, 2, 0), (1, 3, 0), (2, 3, 0)],
    ),
    (AllPairs(min_gap=0.5, margin_scale=1.0), [(1, 0, 0.75), (1, 3, 1.0)]),
  ],
)
def test_by_hand(maker, expected, toy):
  assert edges_of(maker, toy, SCORES) == [expected]


def test_ties_make_no_edge(toy):
  for maker in (BestWorst(), AllPairs(), Adjacent(), Rejection(keep=4)):
    assert edges_of(maker, toy, [0.5] * 4) == [[]]
  # RLHFlow's rule on (.2, .9, .9, .1): the first of the best.
  assert edges_of(BestWorst(), toy, [0.2, 0.9, 0.9, 0.1]) == [[(1, 3, 0.0)]]


def test_invalid_rows_take_no_part(toy):
  """The best of all is invalid."""
  valid = np.array([1.0, 0.0, 1.0, 1.0])
  fields = {'valid_B': valid, 'weight_B': valid}
  assert edges_of(BestWorst(), toy, SCORES, **fields) == [[(2, 3, 0.0)]]
  found = edges_of(Adjacent(), toy, SCORES, **fields)
  assert found == [[(2, 0, 0.0), (0, 3, 0.0)]]
  assert len(edges_of(AllPairs(), toy, SCORES, **fields)[0]) == 3
  (pairs,) = edges_of(Rejection(keep=4), toy, SCORES, **fields)
  assert all(1 not in pair[:2] for pair in pairs)


def test_given_reads_the_labels(toy):
  """Rewards do not count; rows without a label take no part."""
  labels = {'chosen_B': np.array([0.0, 1.0, -1.0, 0.0])}
  found = edges_of(RecordedPairs(), toy, SCORES, extras=labels)
  assert found == [[(1, 0, 0.0), (1, 3, 0.0)]]


def test_all_pairs_of_two_are_the_given_ones(toy):
  """Rewards may be the labels; and the best against the worst."""
  labels = np.array([0.0, 1.0, 1.0, 0.0])
  found = [
    edges_of(maker, toy, labels, group_size=2, extras={'chosen_B': labels})
    for maker in (RecordedPairs(), AllPairs(), BestWorst(), Adjacent())
  ]
  assert found == [[[(1, 0, 0.0)], [(0, 1, 0.0)]]] * 4


def test_sides_are_compared(toy):
  """Own samples 0 and 1 against the opponent's, not among themselves."""
  sides = {'opponent_B': np.array([0.0, 0.0, 1.0, 1.0])}
  found = edges_of(AgainstOpponent(margin_scale=1.0), toy, SCORES, extras=sides)
  expected = [(2, 0, 0.25), (0, 3, 0.25), (1, 2, 0.5), (1, 3, 1.0)]
  assert found == [expected]


def test_missing_labels_are_named(toy):
  with pytest.raises(ValueError, match=r"extras\['chosen_B'\] is missing"):
    edges_of(RecordedPairs(), toy, SCORES)


def test_rewards_by_token_are_summed(toy):
  reward = np.array([[1.0, 0.0], [0.5, 0.75]], np.float32)
  traj = toy.trajectories(np.ones((2, 2)), group_size=2)
  edges = AllPairs(margin_scale=1.0)(CreditContext(reward, traj)).value
  assert int(edges.win_NE[0, 0]) == 1
  assert float(edges.margin_NE[0, 0]) == 0.25


def frequencies(toy, beta, groups=3000):
  """The number of times that each sample is one of the two that are kept."""
  reward = np.tile(np.array([0.0, 1.0, 2.0], np.float32), groups)
  pairs = edges_of(Rejection(beta=beta), toy, reward, group_size=3)
  assert all(len(pair) == 1 for pair in pairs)
  kept = np.array([pair[0][:2] for pair in pairs]).ravel()
  return np.bincount(kept, minlength=3) / groups


def test_rejection_tilts_towards_rewards(toy):
  """beta 0.5: in the first sweep 2 always passes, 1 with 0.135335, 0 with
  0.018316; if neither does, 1 passes in the next one, and 0 with 0.135335."""
  found = frequencies(toy, beta=0.5)
  # All three pass with 0.002479; a random two of them are kept.
  np.testing.assert_allclose(found[2], 1 - 0.002479 / 3, atol=0.002)
  # 0 is kept if it passes without 1 (0.015837), in two thirds of the cases in
  # which all pass, and in half of those in which it passes in the second sweep
  # (0.848829 * 0.135335 / 2): 0.074928.
  np.testing.assert_allclose(found[0], 0.074928, atol=0.015)
  # Large beta: all pass, so a random two are kept.
  np.testing.assert_allclose(frequencies(toy, 1e6), 2 / 3, atol=0.03)


def process_weights(toy, outcome, steps, **fields):
  """(win, lose, weight) of the live edges of one group."""
  rewards = {'outcome': np.array(outcome), 'format': np.array(steps)}
  traj = toy.trajectories(
    np.ones((len(outcome), 1)), group_size=len(outcome), rewards=rewards
  )
  edges = OutcomeThenProcess(**fields)(CreditContext(traj.reward_B, traj)).value
  rows = zip(edges.win_NE[0], edges.lose_NE[0], edges.weight_NE[0], strict=True)
  return [(int(w), int(x), pytest.approx(float(y))) for w, x, y in rows if y]


def test_outcomes_count_before_processes(toy):
  """A right response with poor steps beats a wrong one with good steps, fully;
  of two right ones the weight is the difference of their steps."""
  found = process_weights(toy, [1.0, 1, 0, 0], [0.2, 0.5, 0.9, 0.9])
  assert found == [(1, 0, 0.3), (0, 2, 1), (0, 3, 1), (1, 2, 1), (1, 3, 1)]
  # Equal process scores: the outcomes only, as AllPairs.
  plain = process_weights(toy, [1.0, 0, 0], [0.5, 0.5, 0.5])
  assert plain == [(0, 1, 1), (0, 2, 1)]
  # Process scores of any size: the larger graded outcome still wins.
  graded = process_weights(toy, [0.5, 0.25, 0.25], [0.0, 9.0, 5.0])
  assert graded == [(0, 1, 1), (0, 2, 1), (1, 2, 4)]
  # A number added to all process scores changes nothing.
  moved = process_weights(toy, [1.0, 1, 0, 0], [0.1, 0.4, 0.8, 0.8])
  assert moved == found
  with pytest.raises(ValueError, match="OutcomeThenProcess.components = .*'q'"):
    process_weights(toy, [1.0, 0], [0.0, 0], process='q')
