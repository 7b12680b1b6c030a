"""Papers describe runs that fit; committed tables are those of the results."""

import json
import pathlib

import pytest

from experiments import (
  configuration,
  leaderboard,
  result_checks,
  sweeps,
  tables,
)
from experiments.papers import policy_loss_leaderboard
from rl_jax import config as config_lib
from rl_jax import metrics

PAPERS = pathlib.Path(tables.__file__).parent / 'papers'
RESULTS = sorted(path.stem for path in PAPERS.glob('*.jsonl'))
OWN_TABLES = {'entropy_mechanism'}  # see test_entropy_tables.py


@pytest.mark.parametrize('name', configuration.names('experiments.papers'))
def test_every_row_of_a_paper_fits(name):
  """One seed of each; more than one seed, and no run twice."""
  members = sweeps.load(name)
  first = [run for run in members if run.setting['seed'] == 0]
  assert 0 < len(first) < len(members)
  for run in first:
    config_lib.validate(run.config)


@pytest.mark.parametrize('name', RESULTS)
def test_committed_results_are_of_the_runs_of_today(name):
  """Every line has the digest of a run of the sweep, and no run lacks one."""
  digests = {json.dumps(r.setting): r.digest for r in sweeps.load(name)}
  rows = metrics.read_jsonl(PAPERS / f'{name}.jsonl')
  found = {
    json.dumps(row['setting']): row['digest']
    for row in rows
    if row['digest'] is not None  # references are no runs
  }
  assert found == digests


@pytest.mark.parametrize(
  'name', sorted({path.stem for path in PAPERS.glob('*.jsonl')} - OWN_TABLES)
)
def test_a_committed_table_is_fresh(name):
  """What `experiments.table` makes of NAME.jsonl stands in NAME.md."""
  rows = metrics.read_jsonl(PAPERS / f'{name}.jsonl')
  mixed = result_checks.mixtures(rows)
  if name == 'policy_loss_leaderboard':
    tokens = policy_loss_leaderboard.TOKENS
    cells = leaderboard.cells(rows, 'grpo', tokens, mixed)
    failures = leaderboard.failures(rows)
  else:
    cells = tables.comparison(rows, 'method=reinforce', mixed)
    failures = tables.failures(rows)
  text = (PAPERS / f'{name}.md').read_text()
  assert tables.render(cells, 'markdown') in text
  for line in failures:  # none is dropped silently
    assert line.split(':')[0].removeprefix('method=') in text


def test_readme_quotes_the_leaderboard():
  """Every row there has the cells of the table, best first."""
  rows = metrics.read_jsonl(PAPERS / 'policy_loss_leaderboard.jsonl')
  header, *cells = leaderboard.cells(
    rows, 'grpo', policy_loss_leaderboard.TOKENS
  )
  lines = (PAPERS.parents[1] / 'README.md').read_text().splitlines()
  start = next(
    i for i, line in enumerate(lines) if line.startswith('| method | seeds | f')
  )
  split = lambda line: [cell.strip() for cell in line.strip('|').split('|')]
  columns, quoted = split(lines[start]), []
  for line in lines[start + 2 :]:
    if not line.startswith('|'):
      break
    quoted.append(split(line))
  known = [[row[header.index(name)] for name in columns] for row in cells]
  assert len(quoted) > 10 and 'grpo' in [row[0] for row in quoted]
  assert quoted == [row for row in known if row in quoted]
