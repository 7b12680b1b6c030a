"""Scores of rows and what they keep, by hand."""

import numpy as np
import pytest

from rl_jax.data import row_selection


def test_ranks_by_hand():
  """Of (5, 1, 5, 9) the two fives share the places 1 and 2 of 0 to 3."""
  np.testing.assert_allclose(
    row_selection.ranks(np.array([5.0, 1.0, 5.0, 9.0])), [0.5, 0, 0.5, 1]
  )
  np.testing.assert_array_equal(row_selection.ranks(np.array([3.0])), [0.5])


def test_joint_rank_by_hand():
  """A quarter of the rank of the difficulty: (0.25, 0.375, 0.875)."""
  found = row_selection.joint_rank(
    np.array([3.0, 1.0, 2.0]), np.array([10, 50, 70])
  )
  np.testing.assert_allclose(found, [0.25, 0.375, 0.875])


def test_joint_rank_of_weight_zero_is_the_longest():
  """The reduction; what is monotone in a score changes nothing (E0)."""
  difficulty, length = np.array([3.0, 1, 2, 9]), np.array([4.0, 1, 8, 2])
  np.testing.assert_array_equal(
    row_selection.joint_rank(difficulty, length, 0.0),
    row_selection.ranks(length),
  )
  np.testing.assert_array_equal(
    row_selection.joint_rank(np.exp(difficulty), length**3),
    row_selection.joint_rank(difficulty, length),
  )


def test_weight_changes_by_hand():
  """The example of two tokens: DON -0.020097, NOD 0.056278."""
  grown, moved = row_selection.weight_changes(
    np.array([0.331582]), np.array([0.316716]), np.sqrt(2.5), 0.1
  )
  np.testing.assert_allclose(grown, [-0.020097], atol=1e-6)
  np.testing.assert_allclose(moved, [0.056278], atol=1e-6)


def test_weight_changes_to_first_order():
  """A small step: DON is -eta <g, W> / |W|. A row without gradient: 0."""
  inner, square = np.array([0.3, 0.0]), np.array([0.4, 0.0])
  grown, moved = row_selection.weight_changes(inner, square, 2.0, 1e-9)
  np.testing.assert_allclose(grown, [-0.15e-9, 0.0], rtol=1e-6)
  assert moved[1] == 0.0


COSTS = np.array([[-0.02, 0.10], [0.01, 0.05], [0.03, 0.30], [0.0, 0.20]])


@pytest.mark.parametrize(
  ('benefits', 'expected'),
  [
    (None, [0.9156, 0.5149, 0.0, 0.5590]),
    ((False, True), [0.7171, 0.3395, 0.3314, 0.6000]),
  ],
)
def test_closeness_by_hand(benefits, expected):
  """Both columns are costs, or the second is a benefit."""
  found = row_selection.closeness(COSTS, benefits)
  np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_scale_of_a_column_changes_nothing():
  """E1."""
  np.testing.assert_allclose(
    row_selection.closeness(COSTS * [1e-3, 50.0]),
    row_selection.closeness(COSTS),
    rtol=1e-12,
  )
  np.testing.assert_array_equal(row_selection.closeness(np.ones((3, 2))), 1.0)


def test_loss_reduction_keeps_by_means_not_sums():
  """CoLoR-Filter by hand: rows 0 and 2 of losses a token; sums keep 0, 1."""
  before = np.array([3.0, 2.5, 4.0, 1.0])
  after = np.array([2.0, 2.4, 3.8, 1.1])
  reduction = before - after
  np.testing.assert_array_equal(row_selection.keep(reduction, 2), [0, 2])
  tokens = np.array([10, 100, 10, 10])
  np.testing.assert_array_equal(
    row_selection.keep(reduction * tokens, 2), [0, 1]
  )
  # The same constant in both models changes nothing; all rows are the pool.
  np.testing.assert_array_equal(
    row_selection.keep((before + 3) - (after + 3), 2), [0, 2]
  )
  np.testing.assert_array_equal(row_selection.keep(reduction, 4), [0, 1, 2, 3])


@pytest.mark.parametrize(
  ('part', 'count', 'expected'),
  [
    ('highest', 2, [1, 4]),
    ('lowest', 2, [0, 2]),
    ('middle', 1, [3]),
    ('middle', 2, [2, 3]),
  ],
)
def test_parts_by_hand(part, count, expected):
  """Scores 0, 9, 1, 2, 3, of which two are the extremes."""
  score = np.array([0.0, 9.0, 1.0, 2.0, 3.0])
  np.testing.assert_array_equal(
    row_selection.keep(score, count, part), expected
  )


def test_of_equal_scores_the_first_rows_are_kept():
  for part in row_selection.PARTS[::2]:
    np.testing.assert_array_equal(
      row_selection.keep(np.zeros(5), 2, part), [0, 1]
    )


@pytest.mark.parametrize(
  ('call', 'message'),
  [
    (lambda: row_selection.keep(np.ones(3), 0), '0 rows to keep of 3'),
    (lambda: row_selection.keep(np.ones(3), 4), '4 rows to keep of 3'),
    (lambda: row_selection.keep(np.ones(3), 1, 'best'), "part = 'best'"),
    (lambda: row_selection.keep(np.array([1, np.nan]), 1), 'row 1 has no'),
    (lambda: row_selection.ranks(np.array([])), 'no rows'),
    (lambda: row_selection.joint_rank([1.0], [1, 2]), '1 difficulties and 2'),
    (lambda: row_selection.joint_rank([1.0], [1], 2.0), 'weight = 2.0'),
    (
      lambda: row_selection.weight_changes(np.ones(1), np.ones(1), 1.0, 0.0),
      'step_size = 0.0',
    ),
  ],
)
def test_bad_arguments_are_named(call, message):
  with pytest.raises(ValueError, match=message):
    call()


REWARDS = np.array([[0.0, 1.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0]])


@pytest.mark.parametrize(
  ('kind', 'expected'),
  [
    ('range', (1.0, 0.0, 1.0)),
    ('regret', (0.5, 0.0, 0.75)),
    ('variance', (0.25, 0.0, 0.1875)),
  ],
)
def test_informativeness_by_hand(kind, expected):
  np.testing.assert_allclose(
    row_selection.informativeness(REWARDS, kind), expected
  )


def test_informativeness_of_shifted_and_scaled_rewards():
  """E1: a constant changes nothing, a factor is one of the range."""
  found = row_selection.informativeness(2.0 * REWARDS + 3.0)
  np.testing.assert_allclose(found, 2 * row_selection.informativeness(REWARDS))


def test_responses_that_were_not_judged_do_not_count():
  nan = np.nan
  found = row_selection.informativeness(
    np.array([[nan, 0.0, 1.0], [nan, nan, 1.0], [nan, nan, nan]])
  )
  np.testing.assert_array_equal(found, [1.0, 0.0, 0.0])


def test_rows_are_drawn_by_their_scores():
  """Shares of 4,000 draws of one row of scores (0.1, 0.4, 0.5)."""
  rng, scores = np.random.default_rng(0), np.array([0.1, 0.4, 0.5])
  rows = [row_selection.drawn(scores, 1, rng)[0] for _ in range(4000)]
  share = np.bincount(rows, minlength=3) / 4000
  np.testing.assert_allclose(share, scores, atol=0.03)


def test_rows_of_score_zero_come_last():
  """All rows with a score are drawn before them; N of N are all."""
  rng, scores = np.random.default_rng(0), np.array([0.0, 0.2, 0.0, 1e-6])
  for _ in range(20):
    assert {1, 3} < set(row_selection.drawn(scores, 3, rng))
  np.testing.assert_array_equal(row_selection.drawn(scores, 4, rng), range(4))


@pytest.mark.parametrize(
  ('scores', 'count', 'message'),
  [((1.0, -1.0), 1, 'below 0'), ((1.0, 2.0), 3, '3 rows to draw of 2')],
)
def test_wrong_draws_are_refused(scores, count, message):
  with pytest.raises(ValueError, match=message):
    row_selection.drawn(np.array(scores), count, np.random.default_rng(0))


def test_deficient_rows_by_hand():
  """Shares of wrong samples count first; the loss decides among equal ones."""
  nan = np.nan
  outcomes = [[1, 1, 0, 0], [1, 1, 1, 1], [0, nan, nan, 1], [nan] * 4, [1] * 4]
  wrong = row_selection.wrong_shares(np.array(outcomes, float))
  np.testing.assert_array_equal(wrong, [0.5, 0.0, 0.5, 1.0, 0.0])
  loss = np.array([0.1, 9.0, 0.2, 0.0, 0.3])  # ranks 1/4, 1, 2/4, 0, 3/4
  found = row_selection.deficiency(wrong, loss)
  np.testing.assert_array_equal(found, [1.125, 0.5, 1.25, 2.0, 0.375])


def test_equal_outcomes_are_ordered_by_the_loss():
  """E0: then a deficiency is half the rank of the loss; and the reverse."""
  rng = np.random.default_rng(0)
  loss, wrong = rng.random(9), rng.random(9)
  same = row_selection.deficiency(np.full(9, 0.25), loss)
  np.testing.assert_array_equal(same, row_selection.ranks(loss) / 2)
  found = row_selection.deficiency(wrong, np.exp(3 * loss))
  assert (np.argsort(found) == np.argsort(wrong)).all()
  np.testing.assert_array_equal(found, row_selection.deficiency(wrong, loss))
  with pytest.raises(ValueError, match='9 shares and 8 losses'):
    row_selection.deficiency(wrong, loss[1:])


def test_solved_rows_are_discarded():
  """A fifth of ten solved rows stays; share 1 keeps all, share 0 no solved."""
  wrong = np.array([0.0] * 10 + [0.5, 0.125])
  rng = np.random.default_rng(0)
  for _ in range(5):
    kept = row_selection.unsolved(wrong, 0.2, rng)
    assert len(kept) == 4 and set(kept) >= {10, 11}
    assert (np.diff(kept) > 0).all()
  np.testing.assert_array_equal(
    row_selection.unsolved(wrong, 1.0, rng), range(12)
  )
  np.testing.assert_array_equal(
    row_selection.unsolved(wrong, 0.0, rng), [10, 11]
  )


def test_acceptance_by_hand():
  """E1: with beta 0.5 scores 0, 1 and 2 pass a sweep with exp(-4), exp(-2), 1;
  the best of each sweep is always accepted.
  """
  score = np.array([0.0, 1.0, 2.0])

  class Fixed:
    def __init__(self, *draws):
      self.draws = list(draws)

    def uniform(self, size):
      return np.array(self.draws.pop(0)[:size])

  below, above = 0.018315, 0.018316
  for draw, expected in ((below, [0, 2]), (above, [2, 1])):
    rng = Fixed([draw, 0.135336, 0.999], [0.5, 0.5])
    found = row_selection.accepted(score, 2, 0.5, rng)
    np.testing.assert_array_equal(found, expected)


def test_acceptance_at_the_ends_of_beta():
  """beta 0 takes the highest scores, an infinite one the first; none twice."""
  rng = np.random.default_rng(0)
  score = rng.permutation(10).astype(float)
  best = row_selection.accepted(score, 4, 0.0, rng)
  np.testing.assert_array_equal(score[best], [9, 8, 7, 6])
  first = row_selection.accepted(score, 4, np.inf, rng)
  np.testing.assert_array_equal(first, [0, 1, 2, 3])
  every = row_selection.accepted(score, 99, 0.5, rng)
  assert sorted(every) == list(range(10))
  with pytest.raises(ValueError, match='beta = -1'):
    row_selection.accepted(score, 4, -1.0, rng)


def test_acceptance_tilts_what_was_drawn():
  """The first accepted of 64 draws follows p exp(r / beta); a number added to
  all scores changes nothing (E0).
  """
  p, r, beta = np.array([0.6, 0.3, 0.1]), np.array([0.0, 1.0, 2.0]), 0.5
  exact = p * np.exp(r / beta)
  exact /= exact.sum()
  rng = np.random.default_rng(1)
  counts = np.zeros(3)
  for seed in range(2000):
    kind = rng.choice(3, size=64, p=p)
    draws = [np.random.default_rng(seed) for _ in range(2)]
    found = row_selection.accepted(r[kind], 1, beta, draws[0])
    moved = row_selection.accepted(r[kind] + 8.0, 1, beta, draws[1])
    assert found == moved
    counts[kind[found[0]]] += 1
  np.testing.assert_allclose(counts / 2000, exact, atol=0.035)
