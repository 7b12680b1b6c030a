"""One table of a finished sweep: means, intervals, paired comparison.

  python -m experiments.table --workdir=runs/bandit_methods
    --metric=reward/mean --baseline=method=reinforce --format=markdown
  python -m experiments.table --paper=bandit_methods
  python -m experiments.table --paper=bandit_methods --update

With --paper the tables of a paper are made from its committed results; --update
writes them into its README.md instead of printing them.
Otherwise there is one row for each setting in DIR/results.jsonl, without the
seed. Intervals are 95% by Student's t over seeds; a difference to the baseline
is paired by seed. Its p-value is adjusted for the number of rows (Benjamini and
Hochberg): a row below 0.05 is separated from the baseline.

--comparison tabulates mean reward, final reward and final entropy after equally
many samples; --leaderboard=TOKENS held-out accuracy after this many generated
tokens, each method with its own learning rate (tables/leaderboard.py).
--excerpt writes lines with only the numbers of the table, small enough to
commit; --workdir also accepts this file. --published adds a column from a JSON
file {row name: number as published}.
"""

import json
import sys

from absl import flags

from experiments.flags import configuration
from experiments.tables import cells, leaderboard, result_checks
from experiments.tables import papers as paper_tables
from rl_jax.records import metrics

_WORKDIR = flags.DEFINE_string(
  'workdir', '', 'Directory of a sweep, or a JSONL.'
)
_PAPER = flags.DEFINE_string('paper', '', 'Read its committed results.')
_UPDATE = flags.DEFINE_bool('update', False, 'Of --paper: its README.md.')
_METRIC = flags.DEFINE_string('metric', 'reward/mean', 'In the last row.')
_BASELINE = flags.DEFINE_string('baseline', None, 'Row name, as KEY=VALUE.')
_FORMAT = flags.DEFINE_enum(
  'format', 'markdown', ['markdown', 'csv', 'latex'], 'Of the table.'
)
_COMPARISON = flags.DEFINE_bool(
  'comparison', False, 'Reward and entropy after equally many samples.'
)
_LEADERBOARD = flags.DEFINE_integer('leaderboard', 0, 'Tokens to compare at.')
_EXCERPT = flags.DEFINE_string('excerpt', None, 'JSONL to write.')
_PUBLISHED = flags.DEFINE_string('published', None, 'Numbers as published.')
_MIXED = flags.DEFINE_bool(
  'allow_mixed', False, 'Mark mixed results instead of refusing them.'
)


def main(argv):
  """Prints the table."""
  del argv
  if bool(_WORKDIR.value) == bool(_PAPER.value):
    raise ValueError('give either --workdir or --paper')
  if _PAPER.value:
    found, notes = paper_tables.read(_PAPER.value, _MIXED.value)
    if _UPDATE.value:
      print(paper_tables.update(_PAPER.value, found))
    else:
      print(paper_tables.render(found, _FORMAT.value), end='')
    for note in notes:
      print(note, file=sys.stderr)
    return
  rows, mixed = result_checks.read_rows(_WORKDIR.value, None, _MIXED.value)
  source = leaderboard if _LEADERBOARD.value else cells
  for line in source.failures(rows):
    print(line, file=sys.stderr)
  if _EXCERPT.value:
    with open(_EXCERPT.value, 'w') as file:
      for row in source.excerpt(rows):
        file.write(json.dumps(metrics.to_json(row)) + '\n')
  if _LEADERBOARD.value:
    found = leaderboard.cells(rows, _BASELINE.value, _LEADERBOARD.value, mixed)
  elif _COMPARISON.value:
    found = cells.comparison(rows, _BASELINE.value, mixed)
  else:
    published = None
    if _PUBLISHED.value:
      with open(_PUBLISHED.value) as file:
        published = json.load(file)
    values = cells.by_setting(rows, _METRIC.value)
    found = cells.lines(values, _BASELINE.value, published, mixed)
  print(cells.render(found, _FORMAT.value), end='')


if __name__ == '__main__':
  configuration.run(main)
