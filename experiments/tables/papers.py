"""The tables of a paper, experiments/papers/NAME, from its results.jsonl.

The paper's README.md contains the tables that are made here.
"""

from collections.abc import Sequence
import importlib
import pathlib
from typing import Any

from experiments.flags import configuration
from experiments.sweeps import runs as sweep_runs
from experiments.tables import cells as cells_lib
from experiments.tables import result_checks

# Papers whose folder has a tables.py.
OWN_TABLES = (
  *('entropy_mechanism', 'episodes', 'preferences', 'proxy', 'staleness'),
  'worlds',
)
FOLDER = pathlib.Path(__file__).parents[1] / 'papers'
HINTS = {
  'comparison': 'Mean reward of all samples, and reward and entropy of the '
  'last tenth, after equally many samples. The head of a column sorts by it.',
}

Cells = list[list[str]]


def make(
  paper: str, rows: list[dict[str, Any]], mixed: Sequence[str] = ()
) -> dict[str, Cells]:
  """Name of a table -> header and rows.

  Of OWN_TABLES what its tables.py makes, of others a comparison.
  """
  if paper in OWN_TABLES:
    own = importlib.import_module(f'experiments.papers.{paper}.tables')
    return own.all_tables(rows)
  module = importlib.import_module(f'experiments.papers.{paper}.sweep')
  return {'comparison': cells_lib.comparison(rows, module.BASELINE, mixed)}


def read(
  paper: str, allow_mixed: bool = False
) -> tuple[dict[str, Cells], list[str]]:
  """(tables, notes) of the committed results.

  Raises ValueError if the paper is unknown, has no results, or has results that
  are mixed or do not belong to its runs.
  """
  digests = [run.digest for run in sweep_runs.load(paper)]
  configuration.check_clone(f'--paper={paper}')
  module = importlib.import_module(f'experiments.papers.{paper}.sweep')
  # Of a sweep whose tables are made at different times.
  own = {'table_of': module.table_of} if hasattr(module, 'table_of') else {}
  path = FOLDER / paper / 'results.jsonl'
  rows, mixed = result_checks.read_rows(str(path), digests, allow_mixed, **own)
  found = make(paper, rows, mixed)
  failures = cells_lib.failures(rows)
  return found, result_checks.notes_on(rows, mixed, digests, failures)


def update(paper: str, results: dict[str, Cells]) -> str:
  """Writes the tables between their markers in the README; returns its path."""
  path = FOLDER / paper / 'README.md'
  path.write_text(cells_lib.with_tables(path.read_text(), results))
  return str(path)


def sections(results: dict[str, Cells]) -> list[dict[str, Any]]:
  """The tables in the form that `reports.html.render` takes."""
  return [
    {
      'title': name,
      'header': cells[0],
      'rows': cells[1:],
      'hint': HINTS.get(name, ''),
    }
    for name, cells in results.items()
  ]


def render(results: dict[str, Cells], form: str) -> str:
  """All tables as text, with names if there are several."""
  parts = [
    (f'{name}\n\n' if len(results) > 1 else '') + cells_lib.render(cells, form)
    for name, cells in results.items()
  ]
  return '\n'.join(parts)
