"""Writes one HTML page: curves, differences and responses of runs, or tables.

  python -m experiments.report --workdir=runs/grpo --out=report.html
  python -m experiments.report --workdirs=runs/grpo,runs/dapo --out=report.html
  python -m experiments.report --results=runs/methods/results.jsonl
    --paper=bandit_methods --table_baseline=method=grpo --out=table.html
  python -m experiments.report --paper=bandit_methods --out=table.html

With --paper alone the page has the tables of its committed results.

The page needs no network. Its rollout browser colours tokens by entropy,
advantage, log-prob gap or clipping. Runs whose paths differ only in a last part
`seed<number>` are drawn as one line with a band. Configurations are compared
with --baseline: a label of the page, or a method.
"""

import os

from absl import app, flags

from experiments.flags import configuration
from experiments.reports import html as report_html
from experiments.reports import runs as report_runs
from experiments.sweeps import runs as sweep_runs
from experiments.tables import papers as paper_tables
from experiments.tables import result_checks

_WORKDIR = flags.DEFINE_string('workdir', '', 'One run.')
_WORKDIRS = flags.DEFINE_list('workdirs', [], 'Several runs.')
_RESULTS = flags.DEFINE_string('results', '', 'A results.jsonl.')
_PAPER = flags.DEFINE_string('paper', '', 'Name of the paper.')
_METRIC = flags.DEFINE_string('metric', 'reward/mean', 'In the table.')
_LEADERBOARD = flags.DEFINE_integer(
  'leaderboard', 0, 'Tokens: the table of `table --leaderboard`.'
)
_TABLE_BASELINE = flags.DEFINE_string('table_baseline', None, 'A row name.')
_BASELINE = flags.DEFINE_string('baseline', '', 'Label of a run, or a method.')
_TITLE = flags.DEFINE_string('title', '', 'Heading of the page.')
_MEGABYTES = flags.DEFINE_float(
  'max_megabytes', 8.0, 'Limit for rollouts in the page.', lower_bound=0.0
)
_MIXED = flags.DEFINE_bool(
  'allow_mixed', False, 'Mark mixed results instead of refusing them.'
)
_OUT = flags.DEFINE_string('out', None, 'HTML file to write.', required=True)


def main(argv):
  """Reads, renders, writes."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  workdirs = [path for path in (_WORKDIR.value, *_WORKDIRS.value) if path]
  if not (workdirs or _RESULTS.value or _PAPER.value):
    raise ValueError('give --workdir, --workdirs, --results or --paper')
  report_html.check_writable(_OUT.value)
  tables, notes = [], []
  if _RESULTS.value:
    digests = None
    if _PAPER.value:
      digests = [run.digest for run in sweep_runs.load(_PAPER.value)]
    table, notes = result_checks.read_page(
      _RESULTS.value,
      _METRIC.value,
      _TABLE_BASELINE.value,
      digests,
      _MIXED.value,
      _LEADERBOARD.value,
    )
    tables = [table]
  elif _PAPER.value:
    found, notes = paper_tables.read(_PAPER.value, _MIXED.value)
    tables = paper_tables.sections(found)
  runs = report_runs.read_runs(workdirs, _MIXED.value)
  names = [os.path.basename(os.path.normpath(path)) for path in workdirs]
  title = _TITLE.value or ', '.join(names) or _PAPER.value or _RESULTS.value
  page = report_html.render(
    title,
    runs,
    baseline=_BASELINE.value,
    tables=tables,
    notes=notes,
    max_bytes=int(_MEGABYTES.value * 1e6),
  )
  report_html.write(page, _OUT.value)
  print(f'{_OUT.value}: {len(page) / 1e6:.1f} MB')


if __name__ == '__main__':
  configuration.run(main)
