"""Numbers of the table, computed by hand, and its three formats."""

import csv
import io

import pytest

from experiments.sweeps import courses
from experiments.tables import cells as cells_lib


def results():
  """Two methods, three seeds: 1, 2, 3 and 2, 3, 7."""
  return [
    {
      'name': f'{method}{seed}',
      'setting': {'config': 'bandit', 'method': method, 'seed': seed},
      'last': {'reward/mean': value},
    }
    for method, values in (('grpo', (1, 2, 3)), ('kl_cov', (2, 3, 7)))
    for seed, value in enumerate(values)
  ]


def test_rows_are_named_by_what_differs():
  """The common configuration and the seed are not part of a name."""
  found = cells_lib.by_setting(results(), 'reward/mean')
  assert found == {
    'method=grpo': {0: 1, 1: 2, 2: 3},
    'method=kl_cov': {0: 2, 1: 3, 2: 7},
  }
  with pytest.raises(ValueError, match="grpo0 has no 'x'; it has reward/mean"):
    cells_lib.by_setting(results(), 'x')


def test_the_method_is_the_name_where_it_tells_rows_apart():
  """The method by itself is the name if it identifies the row."""
  rows = results()
  for row in rows[3:]:
    row['setting']['model.value_head'] = True
  assert set(cells_lib.row_names(rows)) == {'method=grpo', 'method=kl_cov'}
  rows[0]['setting']['rollout.group_size'] = 4
  names = cells_lib.row_names(rows)
  assert names[0] == 'method=grpo rollout.group_size=4'
  assert names[-1] == 'method=kl_cov model.value_head=True'


def test_the_table_and_its_forms():
  """Cells of both rows; Markdown, CSV that reads back, LaTeX that escapes."""
  found = cells_lib.by_setting(results(), 'reward/mean')
  cells = cells_lib.lines(found, 'method=grpo', {'method=kl_cov': 3.5})
  assert cells[0][:3] == ['setting', 'published', 'seeds']
  assert cells[1] == [
    *('method=grpo', '', '3', '2.000', '[-0.484, 4.484]', '', '', '')
  ]
  assert cells[2][:4] == ['method=kl_cov', '3.5', '3', '4.000']
  # 1, 1, 4: 2 -+ 4.303, t = 2; the only row that is compared.
  assert cells[2][5:] == ['+2.000', '[-2.303, +6.303]', '0.184']
  markdown = cells_lib.render(cells, 'markdown').splitlines()
  assert len(markdown) == 4 and markdown[1] == '|' + '---|' * 8
  text = cells_lib.render(cells, 'csv')
  assert list(csv.reader(io.StringIO(text))) == cells
  latex = cells_lib.render(cells, 'latex')
  assert r'kl\_cov' in latex and r'95\%' in latex
  assert (
    r'\&\#\$\{\}\textasciitilde{}\textasciicircum{}\textbackslash{} \\'
    in (cells_lib.render([['&#${}~^\\']], 'latex'))
  )
  with pytest.raises(ValueError, match="no row 'x'. Known: method=grpo"):
    cells_lib.lines(found, 'x', None)


def test_failed_runs_are_counted_and_a_lone_seed_has_no_interval():
  """NaN is left out; pairs are of seeds that both rows have."""
  nan = float('nan')
  found = {'a': {0: 1.0, 1: 2.0}, 'b': {0: 4.0, 1: nan}, 'c': {0: nan}}
  cells = cells_lib.lines(found, 'a', None)[1:]
  few = 'too few seeds'
  assert cells[1] == ['b', '2 (1 failed)', '4.000', few, '+3.000', few, '']
  assert cells[2] == ['c', '1 (1 failed)', 'failed', few, '', '', '']


def test_comparison_after_equal_samples_by_hand():
  """Means 2 and 4: 200%; 1 is not excluded, as 0 is not for the difference."""
  rows = results()
  for row in rows:
    (value,) = row['last'].values()
    row['last'] = {courses.AREA: value, courses.FINAL: 1, courses.ENTROPY: 0}
  rows.append(
    {
      'name': 'dapo0',
      'setting': {'config': 'bandit', 'method': 'dapo', 'seed': 0},
      'failed': 'no reason',
    }
  )
  cells = cells_lib.comparison(rows, 'method=grpo')
  assert cells[1][:4] == ['kl_cov', '3', '4.000 ± 2.646', '200%']
  assert cells[1][5] == '0.184'
  assert cells[2][:6] == ['grpo', '3', '2.000 ± 1.000', '', '', '']
  assert cells_lib.failures(rows) == ['method=dapo: 1 failed: no reason']
  with pytest.raises(ValueError, match="no row 'x'"):
    cells_lib.comparison(rows, 'x')


def test_seeds_of_the_command_line_are_numbers():
  """--set=seed=0,1,2 writes texts, --seeds=3 numbers: the same seeds."""
  rows = results()
  for row in rows[3:5]:
    row['setting']['seed'] = str(row['setting']['seed'])
  found = cells_lib.by_setting(rows, 'reward/mean')
  assert found['method=kl_cov'] == {0: 2, 1: 3, 2: 7}
  assert cells_lib.lines(found, 'method=grpo', None)[2][4] == '+2.000'


def test_a_comparison_leaves_out_what_is_no_number():
  """Counted and not averaged; a row without any comes last."""
  rows = results()
  for row in rows:
    (value,) = row['last'].values()
    value = float('nan') if row['name'] == 'grpo2' else value
    row['last'] = dict.fromkeys(courses.NAMES, value)
  lost = {'config': 'bandit', 'method': 'dapo', 'seed': 0}
  last = dict.fromkeys(courses.NAMES, float('nan'))
  rows.insert(0, {'name': 'dapo0', 'setting': lost, 'last': last})
  _, *cells = cells_lib.comparison(rows, 'method=grpo')
  assert [row[:3] for row in cells] == [
    ['kl_cov', '3', '4.000 ± 2.646'],
    ['grpo', '3 (1 failed)', '1.500 ± 0.707'],
    ['dapo', '1 (1 failed)', 'failed'],
  ]


def test_an_excerpt_has_the_metric_of_the_table():
  """Not only what a comparison reads."""
  rows = results()
  rows[0]['last'] |= {courses.AREA: 0.1234567, 'train/loss': 3.0}
  (small, *_) = cells_lib.excerpt(rows, 'reward/mean')
  assert small['last'] == {courses.AREA: 0.12346, 'reward/mean': 1}
  assert cells_lib.excerpt(rows)[0]['last'] == {courses.AREA: 0.12346}
