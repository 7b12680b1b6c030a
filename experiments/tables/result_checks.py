"""Checks of a sweep's results before tabulation: mixed and failed runs."""

import collections
from collections.abc import Callable, Iterable
import json
import os

from experiments.sweeps.runs import RESULTS
from experiments.tables import cells as cells_lib
from experiments.tables import leaderboard
from rl_jax.records import metrics


def mixtures(
  rows: list[dict],
  digests: Iterable[str] | None = None,
  table_of: Callable[[dict], str] = lambda row: '',
) -> list[str]:
  """Descriptions of results that do not belong in one table; [] if none.

  Several commits of one table_of(row); two configurations of one setting and
  seed; and, if the digests of a paper are given, configurations that are not
  among them.
  """
  found = []
  tables: dict[str, collections.Counter] = {}
  for row in rows:
    commits = tables.setdefault(table_of(row), collections.Counter())
    commits[row.get('commit', 'unknown')] += 1
  for commits in tables.values():
    if len(commits) > 1:
      runs = ', '.join(f'{name} ({n} runs)' for name, n in commits.items())
      found.append(f'commits {runs}')
  digest_of: dict[str, str | None] = {}
  for row in rows:
    setting = dict(row['setting'])
    if 'seed' in setting:
      setting['seed'] = cells_lib.seed_of(row)
    setting = json.dumps(setting, sort_keys=True)
    digest = row.get('digest')
    other = digest_of.setdefault(setting, digest)
    if other != digest:
      found.append(f'configurations {other} and {digest} of {setting}')
  if digests is not None:
    digests = set(digests)
    foreign = [r['name'] for r in rows if r.get('digest') not in digests]
    if foreign:
      found.append(f'configurations of another table: {", ".join(foreign)}')
  return found


def check_mixtures(found: list[str], allowed: bool) -> None:
  """Raises ValueError if `mixtures` returned any, unless allowed."""
  if found and not allowed:
    raise ValueError(
      f'the results mix {"; ".join(found)}. Remove these lines, or give '
      '--allow_mixed: the table is then marked.'
    )


def results_file(path: str) -> str:
  """A JSONL, or results.jsonl in the work directory."""
  return path if path.endswith('.jsonl') else os.path.join(path, RESULTS)


def read_rows(
  path: str,
  digests: Iterable[str] | None,
  allow_mixed: bool,
  table_of: Callable[[dict], str] = lambda row: '',
) -> tuple[list[dict], list[str]]:
  """(rows, mixtures) of a JSONL, or of results.jsonl in the work directory.

  Raises ValueError for a file without a finished run, and for mixtures.
  """
  path = results_file(path)
  rows = metrics.read_jsonl(path) if os.path.exists(path) else []
  if not rows:
    raise ValueError(f'{path} holds no finished run')
  for number, row in enumerate(rows, start=1):
    if not isinstance(row, dict) or not isinstance(row.get('setting'), dict):
      raise ValueError(f'{path}:{number} is not the line of a run: no setting')
    row.setdefault('name', f'line {number}')
    row.setdefault('last', {})
  mixed = mixtures(rows, digests, table_of)
  check_mixtures(mixed, allow_mixed)
  return rows, mixed


def notes_on(
  rows: list[dict],
  mixed: list[str],
  digests: Iterable[str] | None,
  failures: list[str],
) -> list[str]:
  """Notes on mixed, missing and failed runs of a table."""
  notes = [f'MIXED: {text}' for text in mixed]
  if digests is not None:
    digests = set(digests)
    missing = len(digests - {row.get('digest') for row in rows})
    if missing:
      notes.append(f'{missing} of {len(digests)} runs are not finished')
  return notes + [f'FAILED: {line}' for line in failures]


def read_page(
  path: str,
  metric: str,
  baseline: str | None,
  digests: list[str] | None,
  allow_mixed: bool,
  leaderboard_tokens: int = 0,
) -> tuple[dict, list[str]]:
  """({title, header, rows, hint}, notes) of results.jsonl for an HTML page.

  With leaderboard_tokens the table is a leaderboard, else one of `metric`. A
  failed run has no value; the notes have its reason. Raises ValueError for a
  file without a finished run, and for mixtures.
  """
  rows, mixed = read_rows(path, digests, allow_mixed)
  source = leaderboard if leaderboard_tokens else cells_lib
  notes = notes_on(rows, mixed, digests, source.failures(rows))
  every_row = rows
  rows = [row for row in rows if row.get('failed') is None]
  if not rows:
    raise ValueError(f'{path} holds only failed runs: {"; ".join(notes)}')
  if leaderboard_tokens:
    header, *cells = leaderboard.cells(
      every_row, baseline, leaderboard_tokens, mixed
    )
    return {
      'title': 'leaderboard',
      'header': header,
      'rows': cells,
      'hint': leaderboard.HINT,
    }, notes
  found = cells_lib.by_setting(rows, metric)
  header, *cells = cells_lib.lines(found, baseline, None, mixed)
  against = f'; paired with {baseline} by seed' if baseline else ''
  return {
    'title': metric,
    'header': header,
    'rows': cells,
    'hint': f'{metric} of the last row of each run, mean and 95% interval over '
    f'seeds{against}. Runs without a finite value are counted, not averaged. '
    'The head of a column sorts by it.',
  }, notes
