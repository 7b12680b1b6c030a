"""Numbers of the leaderboard, computed by hand; all exact (T0)."""

import json

import numpy as np
import pytest

from experiments.tables import cells as cells_lib
from experiments.tables import leaderboard, result_checks


def run(method, rate, seed, accuracy, **more):
  """A line whose accuracy goes from 0 to `accuracy` in 100 tokens."""
  return {
    'setting': {'method': method, leaderboard.RATE: rate, 'seed': seed},
    'held_out': {'tokens': [0, 100], 'pass_at_1': [0.0, accuracy]},
    'last': {},
    **more,
  }


def test_accuracy_and_area_at_equal_tokens():
  """0, 0.2, 0.6 at 0, 10, 20 tokens; at 15: 0.4, and (1 + 1.5) / 15 before."""
  row = {'held_out': {'tokens': [0, 10, 20], 'pass_at_1': [0.0, 0.2, 0.6]}}
  np.testing.assert_allclose(leaderboard.reading(row, 15), (0.4, 2.5 / 15))
  # Constant after the last point: (1 + 4 + 12) / 40.
  np.testing.assert_allclose(leaderboard.reading(row, 40), (0.6, 17 / 40))
  alone = {'held_out': {'tokens': [7], 'pass_at_1': [0.5]}}
  assert leaderboard.reading(alone, 40)[0] == 0.5
  assert np.isnan(leaderboard.reading(alone, 40)[1])
  assert np.isnan(leaderboard.reading(row | {'failed': 'why'}, 15)).all()


def test_no_run_takes_part_in_the_choice_it_is_reported_under():
  """Rate 1 is best only because of seed 0, so seed 0 itself gets rate 2."""
  rows = [run('a', 1, seed, x) for seed, x in enumerate((0.9, 0.1, 0.1))]
  rows += [run('a', 2, seed, 0.3) for seed in range(3)]
  found = leaderboard.chosen(rows, 100)
  rates = [row['setting'][leaderboard.RATE] for row in found]
  assert rates == [2, 1, 1]  # others of 1: (0.1, 0.1), (0.9, 0.1), (0.9, 0.1)
  rows[0]['failed'] = 'a guard'  # accuracy 0 for the other seeds
  found = leaderboard.chosen(rows, 100)
  assert [row['setting'][leaderboard.RATE] for row in found] == [2, 2, 2]


def test_the_table_counts_failed_runs_and_pairs_seeds():
  """b is 0.1 and 0.3 above a; c failed on one seed, d on all."""
  rows = [run('a', 1, 0, 0.2), run('a', 1, 1, 0.2)]
  rows += [run('b', 1, 0, 0.3), run('b', 1, 1, 0.5)]
  rows += [run('c', 1, 0, 0.6), run('c', 1, 1, 0.0, failed='why')]
  rows += [run('d', 1, 0, 0.0, failed='why')]
  header, *cells = leaderboard.cells(rows, 'a', 100, ['two commits'])
  assert header[0] == 'method (MIXED: two commits)'
  names = leaderboard.HEADER
  by_name = {row[0]: dict(zip(names, row, strict=True)) for row in cells}
  assert [*by_name] == ['c', 'b', 'a', 'd']
  assert by_name['b']['final accuracy'] == '0.400'
  assert by_name['b']['area'] == '0.200'
  assert by_name['b']['to baseline'] == '+0.200'
  # 0.2 -+ 12.706 * 0.1; t = 2 with one degree of freedom: p = 0.295.
  assert by_name['b']['95% paired'] == '[-1.071, +1.471]'
  assert by_name['b']['adjusted p'] == '0.295'
  assert by_name['a']['to baseline'] == by_name['a']['adjusted p'] == ''
  few = ('2 (1 failed)', '0.600', 'too few seeds')
  names = ('seeds', 'final accuracy', '95% final')
  assert tuple(by_name['c'][name] for name in names) == few
  assert by_name['d']['final accuracy'] == ''
  assert cells_lib.render([header, *cells], 'markdown').count('\n') == 6
  with pytest.raises(ValueError, match="no row 'x'. Known: a, b, c, d"):
    leaderboard.cells(rows, 'x', 100)


def test_an_excerpt_makes_the_same_table():
  """Without the settings that all rows share."""
  rows = [run('a', 1, seed, x) for seed, x in enumerate((0.2, 0.4))]
  for row in rows:
    row['setting']['config'] = 'arithmetic_tiny'
    row['last'] = {'course/reward': 0.123456, 'reward/mean': 1.0}
  small = leaderboard.excerpt(rows)
  kept = {'method', leaderboard.RATE, 'seed'}
  assert small[0]['setting'].keys() == kept
  cells = [leaderboard.cells(lines, 'a', 100) for lines in (rows, small)]
  assert cells[0] == cells[1]
  assert small[0]['last'] == {'course/reward': 0.1235}


def test_the_page_has_the_same_table(tmp_path):
  """The page shows all runs, with the failed ones in the notes."""
  rows = [run('a', 1, 0, 0.2, name='a0'), run('b', 1, 0, 0.5, name='b0')]
  rows.append(run('c', 1, 0, 0.0, name='c0', failed='why'))
  path = tmp_path / 'results.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  table, notes = result_checks.read_page(
    str(path), 'reward/mean', 'a', None, False, leaderboard_tokens=100
  )
  assert [table['header'], *table['rows']] == leaderboard.cells(rows, 'a', 100)
  assert notes == ['FAILED: c: 1 failed: why'] and 'sorts' in table['hint']


def test_values_of_the_command_line_are_numbers():
  """--set=optimizer.learning_rate=1e-3 and --set=seed=0 write texts."""
  numbers = [run('a', 1e-3, seed, 0.2) for seed in range(2)]
  texts = [run('b', '1e-3', str(seed), 0.4) for seed in range(2)]
  _, best, _ = leaderboard.cells([*numbers, *texts], 'a', 100)
  cells = dict(zip(leaderboard.HEADER, best, strict=True))
  assert cells['learning rate'] == '0.001'
  assert cells['to baseline'] == '+0.200'


def test_a_leaderboard_drops_no_run():
  """One of two group sizes would be left out."""
  rows = [run('a', 1, 0, 0.2), run('a', 1, 0, 0.9)]
  for row, size in zip(rows, (8, 16), strict=True):
    row['setting']['rollout.group_size'] = size
  with pytest.raises(ValueError, match='rollout.group_size = 8 and 16'):
    leaderboard.cells(rows, 'a', 100)
