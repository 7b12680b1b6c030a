"""Sweeps of papers are valid; committed tables equal the results."""

import json
import pathlib
import subprocess
import sys

import markupsafe
import pytest

from experiments import papers
from experiments.reports import html
from experiments.sweeps import runs as sweep_runs
from experiments.tables import cells as cells_lib
from experiments.tables import papers as paper_tables
from rl_jax import config as config_lib
from rl_jax.records import metrics

PAPERS = pathlib.Path(papers.__file__).parent
# Measured before they were refused; their rows say so on the page.
REFUSED = {'duration_ppo': 'Rollouts here are synchronous'}
RESULTS = sorted(path.parent.name for path in PAPERS.glob('*/results.jsonl'))


@pytest.mark.parametrize('name', sweep_runs.papers())
def test_every_row_of_a_paper_fits(name):
  """One seed of each; more than one seed, and no run twice."""
  members = sweep_runs.load(name)
  lowest = min(run.setting['seed'] for run in members)
  first = [run for run in members if run.setting['seed'] == lowest]
  assert 0 < len(first) < len(members)
  for run in first:
    if run.setting['method'] in REFUSED:
      with pytest.raises(ValueError, match=REFUSED[run.setting['method']]):
        config_lib.validate(run.config)
    else:
      config_lib.validate(run.config)


@pytest.mark.parametrize('name', RESULTS)
def test_committed_results_are_of_the_runs_of_today(name):
  """Lines have the digests of the sweep; no run of their methods lacks one.

  Methods that were added after the results have no lines.
  """
  rows = metrics.read_jsonl(PAPERS / name / 'results.jsonl')
  methods = {row['setting']['method'] for row in rows}
  digests = {
    json.dumps(run.setting): run.digest
    for run in sweep_runs.load(name)
    if run.setting['method'] in methods
  }
  found = {json.dumps(row['setting']): row['digest'] for row in rows}
  assert found == digests


@pytest.mark.parametrize('name', RESULTS)
def test_committed_tables_are_fresh(name):
  """The output of `experiments.table --paper=NAME` is in its README.md."""
  found, notes = paper_tables.read(name)
  text = (PAPERS / name / 'README.md').read_text()
  for table, cells in found.items():
    assert cells_lib.render(cells, 'markdown') in text
    assert cells_lib.BEGIN.format(table) in text  # for table --update
  assert cells_lib.with_tables(text, found) == text
  for note in notes:  # every failed row is mentioned
    if note.startswith('FAILED: '):
      row = note.removeprefix('FAILED: ').removeprefix('method=').split(':')[0]
      assert row in text
    else:  # runs of newer methods
      assert note.endswith('runs are not finished')


def test_results_of_other_runs_are_refused(monkeypatch, tmp_path):
  """A line whose digest is none of the sweep's; a paper without results."""
  monkeypatch.setattr(paper_tables, 'FOLDER', tmp_path)
  with pytest.raises(ValueError, match='holds no finished run'):
    paper_tables.read('bandit_methods')
  rows = metrics.read_jsonl(PAPERS / 'bandit_methods' / 'results.jsonl')
  rows[0]['digest'] = 'f' * 12
  lines = ''.join(json.dumps(row) + '\n' for row in rows)
  (tmp_path / 'bandit_methods').mkdir()
  (tmp_path / 'bandit_methods' / 'results.jsonl').write_text(lines)
  with pytest.raises(ValueError, match='configurations of another table'):
    paper_tables.read('bandit_methods')


@pytest.mark.parametrize('name', RESULTS)
def test_the_page_of_a_paper_has_its_tables(name):
  """The title of every table, and the first cell of every row."""
  found, notes = paper_tables.read(name)
  page = html.render(name, tables=paper_tables.sections(found), notes=notes)
  for table, (_, *rows) in found.items():
    assert f'<h3>{table}</h3>' in page
    for row in rows:
      assert markupsafe.escape(row[0]) in page


@pytest.mark.parametrize(
  ('binary', 'name'),
  [
    ('table', 'staleness'),
    pytest.param('report', 'entropy_mechanism', marks=pytest.mark.slow),
  ],
)
def test_the_commands_need_the_name_alone(binary, name, tmp_path):
  """They print, or write, what the functions make of the committed results."""
  out = tmp_path / 'page.html'
  more = [f'--out={out}'] if binary == 'report' else []
  done = subprocess.run(
    [sys.executable, '-m', f'experiments.{binary}', f'--paper={name}', *more],
    cwd=PAPERS.parents[1],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  found, notes = paper_tables.read(name)
  if binary == 'table':
    assert done.stdout == paper_tables.render(found, 'markdown')
  else:
    page = html.render(name, tables=paper_tables.sections(found), notes=notes)
    assert out.read_text() == page
