"""Nelder-Mead over runs."""

import numpy as np
import pytest

from experiments.sweeps import runs as sweep_runs
from experiments.tools import search


def test_the_top_of_a_hill_is_found():
  """-(x - .3)^2 - (y - .7)^2; each point is asked once, on the grid."""
  asked = []

  def score(point):
    asked.append(point)
    return -((point[0] - 0.3) ** 2) - (point[1] - 0.7) ** 2

  best, found = search.nelder_mead(score, (0.9, 0.9), 0.2, 60)
  assert found > -search.TOLERANCE
  np.testing.assert_allclose(best, (0.3, 0.7), atol=0.1)
  assert len(set(asked)) == len(asked) < 60
  steps = np.asarray(asked) / 5e-3
  np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_the_first_points_are_a_simplex():
  """The start and a step along each axis; no more points than allowed."""
  asked = []

  def score(point):
    return asked.append(point) or point[0]

  best, _ = search.nelder_mead(score, (0.5, 0.0), 0.1, 3)
  assert asked == [(0.5, 0.0), (0.6, 0.0), (0.5, 0.1)]
  assert best == (0.6, 0.0)


def test_units_of_a_reward_do_not_matter():
  """E0: a score of which a constant is taken off has the same points."""
  points = []
  for offset in (0.0, 7.0):
    asked = []

    def score(point, o=offset, a=asked):
      return a.append(point) or o - point[0] ** 2

    search.nelder_mead(score, (1.0,), 0.25, 8)
    points.append(asked)
  assert points[0] == points[1]


def test_small_numbers_have_a_resolution_of_their_own():
  """Learning rates, for example: steps of the default would make them 0."""
  asked = []

  def score(point):
    return asked.append(point) or -1e4 * abs(point[0] - 3e-4)

  best, _ = search.nelder_mead(score, (1e-4,), 1e-4, 20, 1e-5)
  assert asked[:2] == [(1e-4,), (2e-4,)] and best == (3e-4,)
  for start, step, name in (
    (['0.5', '1e-3'], 0.1, '--start=0.001'),
    (['0.5'], 1e-4, '--step=0.0001'),
  ):
    with pytest.raises(ValueError, match=f'{name} is less than --resolution='):
      search.first_point(start, step, 5e-3)
  assert search.first_point(['0', '-1e-3'], 1e-3, 1e-3) == [0.0, -1e-3]
  with pytest.raises(ValueError, match='--start=1,x: could not convert'):
    search.first_point(['1', 'x'], 0.1, 5e-3)


def test_a_field_is_a_number_or_a_tuple():
  setting = {'config': 'bandit', 'method': 'grpo'}
  assert search.is_number(setting, 'optimizer.learning_rate', [0.1])
  setting = {'config': 'bandit_described', 'method': 'constrained_rlhf'}
  thresholds = 'method.credit.Lagrangian.thresholds'
  assert not search.is_number(setting, thresholds, [0.5, 0.9])
  assert not search.is_number(setting, 'task.reward_weights', [0.5, 0.9])
  with pytest.raises(ValueError, match='learning_rate'):
    search.is_number(setting, 'optimizer.learning_rate', [-1.0])


def scored(monkeypatch, row):
  """The score of a run whose line is `row`."""

  def run(parts, *_):
    return monkeypatch.setattr(
      sweep_runs, 'results', lambda _: [{'digest': parts[0][0].digest, **row}]
    )

  monkeypatch.setattr(sweep_runs, 'execute_all', run)
  setting = {'config': 'bandit_described', 'method': 'constrained_rlhf'}
  field = 'method.credit.Lagrangian.thresholds'
  return search.score_by_run(setting, field, 'a', 'w', False)((0.5, 0.25))


def test_the_score_of_a_run(monkeypatch):
  """Its last row; a failed run is worse than all; no such metric is named."""
  assert scored(monkeypatch, {'last': {'a': 0.5}}) == 0.5
  assert scored(monkeypatch, {'failed': 'why', 'last': {}}) == -np.inf
  with pytest.raises(ValueError, match=r"--metric=a .* \['b'\]"):
    scored(monkeypatch, {'last': {'b': 1.0}})


def test_a_run_of_another_process_is_named(monkeypatch):
  """Such a run has no line yet."""
  with pytest.raises(ValueError, match=r'w/config=.*: another process'):
    scored(monkeypatch, {'digest': 'of another'})


def test_what_is_no_number_is_never_the_best():
  """A run whose metric is NaN is worse than one that has any."""

  def score(point):
    return np.nan if point[0] == 1.0 else -((point[0] - 2) ** 2)

  (best,), found = search.nelder_mead(score, (1.0,), 0.1, 15)
  assert best > 1 and np.isfinite(found)
