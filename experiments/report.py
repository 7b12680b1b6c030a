"""Writes one HTML page: curves, differences and responses of runs, or tables.

  python -m experiments.report --workdir=runs/grpo --out=report.html
  python -m experiments.report --workdir=runs/grpo --workdir=runs/dapo
    --out=report.html
  python -m experiments.report --workdir=runs/sweep --out=report.html --watch=10
  python -m experiments.report --results=runs/methods/results.jsonl
    --paper=bandit_methods --table_baseline=method=grpo --out=table.html
  python -m experiments.report --paper=bandit_methods --out=table.html

A directory that is not a run itself, as that of a sweep, stands for all runs
below it, and for the table of its results.jsonl. With only --paper the page has
the tables of its committed results.

Runs that differ only in the seed are drawn as one line with a band of 95%,
whatever their directories are called; the page joins and filters them by any
field. Its rollout browser colours tokens by entropy, advantage, log-prob gap or
clipping. Configurations are compared with --baseline: a label of the page, or a
method.

The page needs no network. With --watch=SECONDS it is written again and loads
itself again, until Ctrl-C.
"""

from collections.abc import Callable
import os
import time

from absl import app, flags

from experiments.flags import configuration, outputs, places
from experiments.reports import html as report_html
from experiments.reports import workdirs as workdirs_lib
from experiments.sweeps import runs as sweep_runs
from experiments.tables import papers as paper_tables
from experiments.tables import result_checks

_WORKDIR = places.define_workdirs('A run, or a sweep')
_RESULTS = flags.DEFINE_string('results', '', 'A results.jsonl.')
_PAPER = flags.DEFINE_string('paper', '', 'Name of the paper.')
_METRIC = flags.DEFINE_string('metric', 'reward/mean', 'In the table.')
_LEADERBOARD = flags.DEFINE_integer(
  'leaderboard', 0, 'Tokens: the table of `table --leaderboard`.', lower_bound=0
)
_TABLE_BASELINE = flags.DEFINE_string('table_baseline', None, 'A row name.')
_BASELINE = flags.DEFINE_string('baseline', '', 'Label of a run, or a method.')
_TITLE = flags.DEFINE_string('title', '', 'Heading of the page.')
_MEGABYTES = flags.DEFINE_float(
  'max_megabytes', 8.0, 'Limit for rollouts in the page.'
)
_MIXED = flags.DEFINE_bool(
  'allow_mixed', False, 'Mark mixed results instead of refusing them.'
)
_WATCH = flags.DEFINE_float(
  'watch', 0.0, 'Seconds after which the page is written again; 0: once.'
)
_OUT = flags.DEFINE_string('out', None, 'HTML file to write.', required=True)


def _tables(workdirs: list[str]) -> tuple[list[dict], list[str]]:
  """(tables, notes) of the results that the flags name, and of sweeps."""
  if _PAPER.value and not _RESULTS.value:
    found, notes = paper_tables.read(_PAPER.value, _MIXED.value)
    return paper_tables.sections(found), notes
  digests = None
  if _PAPER.value:
    digests = [run.digest for run in sweep_runs.load(_PAPER.value)]

  def read(path):
    return result_checks.read_page(
      path,
      _METRIC.value,
      _TABLE_BASELINE.value,
      digests,
      _MIXED.value,
      _LEADERBOARD.value,
    )

  if _RESULTS.value:
    table, notes = read(_RESULTS.value)
    return [table], notes
  tables, notes = [], []
  for path in workdirs:
    if os.path.exists(os.path.join(path, sweep_runs.RESULTS)):
      try:
        table, more = read(path)
        tables.append(table)
        notes += more
      except ValueError as error:  # the curves are worth a page
        notes.append(f'no table of {path}: {error}')
  return tables, notes


def page(reload_seconds: float) -> str:
  """The page that the flags describe, as the files are now."""
  workdirs = places.workdirs(_WORKDIR.value)
  if not (workdirs or _RESULTS.value or _PAPER.value):
    raise ValueError('give --workdir, --results or --paper')
  tables, notes = _tables(workdirs)
  names = [os.path.basename(os.path.normpath(path)) for path in workdirs]
  return report_html.render(
    _TITLE.value or ', '.join(names) or _PAPER.value or _RESULTS.value,
    workdirs_lib.read_runs(workdirs),
    baseline=_BASELINE.value,
    tables=tables,
    notes=notes,
    max_bytes=int(_MEGABYTES.value * 1e6),
    reload_seconds=reload_seconds,
  )


def watch(
  write: Callable[[float], None],
  seconds: float,
  sleep: Callable[[float], None] = time.sleep,
) -> None:
  """Writes the page every so many seconds until Ctrl-C.

  The last page does not reload itself.
  """
  try:
    while True:
      write(seconds)
      sleep(seconds)
  except KeyboardInterrupt:
    write(0)


def main(argv):
  """Reads, renders, writes."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  for flag in (_WATCH, _MEGABYTES):
    if not 0 <= flag.value <= 1e9:  # nan passes the bounds of a flag
      raise ValueError(f'--{flag.name}={flag.value}: expected 0 to 1e9')
  outputs.check_not_source('results', _RESULTS.value or None, _OUT.value)
  report_html.check_writable(_OUT.value)

  def write(reload_seconds: float) -> None:
    text = page(reload_seconds)
    report_html.write(text, _OUT.value)
    print(f'{_OUT.value}: {len(text) / 1e6:.1f} MB')

  if _WATCH.value:
    watch(write, _WATCH.value)
  else:
    write(0)


if __name__ == '__main__':
  configuration.run(main)
