"""Comparison after equally many samples, computed by hand."""

import numpy as np
import pytest

from experiments.sweeps import courses


def rows_of(rewards, rounds):
  """One row an iteration; the entropy is 1 minus the reward."""
  return [
    {'rollout/reward': r, 'policy/entropy': 1 - r, 'rollout/rounds': n}
    for r, n in zip(rewards, rounds, strict=True)
  ]


def test_area_and_end_by_hand():
  """Ten rounds of 0.0 .. 0.9: mean 0.45; the last tenth is the last round."""
  rows = [{'evaluation/pass_at_1': 0.0}]
  rows += rows_of(np.arange(10) / 10, np.ones(10))
  assert courses.summary(rows, 10) == pytest.approx(
    {courses.AREA: 0.45, courses.FINAL: 0.9, courses.ENTROPY: 0.1}
  )


def test_rounds_beyond_the_budget_do_not_count():
  """Two rounds an iteration: rewards 0, 0.5 are four of five rounds."""
  found = courses.summary(rows_of([0.0, 0.5, 1.0], [2, 2, 2]), 5)
  assert found[courses.AREA] == pytest.approx(0.25)
  assert found[courses.FINAL] == pytest.approx(0.5)
  with pytest.raises(ValueError, match='drew more than 1 rounds'):
    courses.summary(rows_of([1.0], [2]), 1)


def test_a_run_without_a_course_keeps_its_other_numbers():
  """It has ended; only a comparison after equal samples lacks it."""
  found = courses.numbers(rows_of([1.0], [2]), 1)
  assert found.keys() == set(courses.NAMES)
  assert np.isnan(list(found.values())).all()
  rows = rows_of([0.5], [1])
  assert courses.numbers(rows, 1) == courses.summary(rows, 1)
