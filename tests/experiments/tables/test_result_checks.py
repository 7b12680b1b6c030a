"""Mixed results are refused, or marked."""

import pytest

from experiments.tables import cells, result_checks


def row(commit='a', digest='d', **setting):
  return {
    'digest': digest,
    'name': digest,
    'setting': setting,
    'commit': commit,
    'last': {'reward/mean': 1.0},
  }


def test_mixtures_are_refused_or_marked():
  """Commits, two configurations of one setting, runs of another table."""
  assert result_checks.mixtures([row(seed=0), row(seed=1, digest='e')]) == []
  (commits,) = result_checks.mixtures([row(seed=0), row('b', 'e', seed=1)])
  assert commits == 'commits a (1 runs), b (1 runs)'

  def by_seed(row):
    return str(row['setting']['seed'])

  two = [row(seed=0), row('b', 'e', seed=1)]
  assert not result_checks.mixtures(two, table_of=by_seed)
  (twice,) = result_checks.mixtures([row(seed=0), row(seed=0, digest='e')])
  assert twice == 'configurations d and e of {"seed": 0}'
  (foreign,) = result_checks.mixtures([row(seed=0)], digests=['x'])
  assert foreign == 'configurations of another table: d'
  result_checks.check_mixtures([], False)
  result_checks.check_mixtures([commits], True)
  with pytest.raises(ValueError, match='commits a .* --allow_mixed'):
    result_checks.check_mixtures([commits], False)
  found = {'all': {0: 1.0, 1: 2.0}}
  header = cells.lines(found, None, None, [commits])[0]
  assert header[0] == f'setting (MIXED: {commits})'


def test_a_line_that_is_no_run_is_named(tmp_path):
  """A list, and an object without a setting; a lost number is named later."""
  path = tmp_path / 'results.jsonl'
  for text in ('[1]', '{"step": 1}'):
    path.write_text('{"setting": {}}\n' + text + '\n')
    with pytest.raises(ValueError, match='results.jsonl:2 is not the line of'):
      result_checks.read_rows(str(tmp_path), None, False)
  path.write_text('{"setting": {}}\n')
  rows, _ = result_checks.read_rows(str(tmp_path), None, False)
  with pytest.raises(ValueError, match="line 1 has no 'reward/mean'"):
    cells.by_setting(rows, 'reward/mean')


def test_two_configurations_of_a_seed_are_found_whatever_wrote_it():
  (twice,) = result_checks.mixtures([row(seed=0), row(seed='0', digest='e')])
  assert twice == 'configurations d and e of {"seed": 0}'
