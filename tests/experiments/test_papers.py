"""Committed tables are what the command makes of the committed results."""

import pathlib

import pytest

from experiments import tables
from rl_jax import metrics

PAPERS = pathlib.Path(tables.__file__).parent / 'papers'


@pytest.mark.parametrize('name', ['bandit_methods'])
def test_the_committed_table_is_fresh(name):
  """`experiments.table --comparison` of NAME.jsonl stands in NAME.md."""
  rows = metrics.read_jsonl(PAPERS / f'{name}.jsonl')
  cells = tables.comparison(rows, 'method=reinforce')
  assert len({row['setting']['seed'] for row in rows}) >= 5
  assert tables.render(cells, 'markdown') in (PAPERS / f'{name}.md').read_text()
  known = {cells[0] for cells in cells[1:]}
  failed = [line.split(':')[0] for line in tables.failures(rows)]
  assert not known & {line.removeprefix('method=') for line in failed}
