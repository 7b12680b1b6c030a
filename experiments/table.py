"""One table of a finished sweep: means, intervals, paired comparison.

  python -m experiments.table --workdir=runs/bandit_methods
    --metric=reward/mean --baseline=method=reinforce --format=markdown
  python -m experiments.table --paper=bandit_methods
  python -m experiments.table --paper=bandit_methods --update
  python -m experiments.table --paper=entropy_mechanism --scale=paper
    --workdir=runs/entropy_mechanism

With --paper the tables of a paper are made from its committed results; --update
writes them into its README.md instead of printing them. With --scale the table
is that of a recipe (papers that have no sweep have no other): published
numbers, ours of the sweep in --workdir or "not run", hardware and command.
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
import os
import sys

from absl import flags

from experiments.flags import configuration, outputs
from experiments.papers import recipe as recipe_lib
from experiments.sweeps import recipes
from experiments.sweeps import runs as sweep_runs
from experiments.tables import cells, leaderboard, published, result_checks
from experiments.tables import papers as paper_tables
from rl_jax.records import metrics

_WORKDIR = flags.DEFINE_string(
  'workdir', '', 'Directory of a sweep, or a JSONL.'
)
_PAPER = flags.DEFINE_string('paper', '', 'Read its committed results.')
_SCALE = flags.DEFINE_enum(
  'scale', '', ['', *recipes.TABLES], 'Of --paper: the table of its recipe.'
)
_UPDATE = flags.DEFINE_bool('update', False, 'Of --paper: its README.md.')
_METRIC = flags.DEFINE_string('metric', 'reward/mean', 'In the last row.')
_BASELINE = flags.DEFINE_string('baseline', None, 'Row name, as KEY=VALUE.')
_FORMAT = flags.DEFINE_enum(
  'format', 'markdown', ['markdown', 'csv', 'latex'], 'Of the table.'
)
_COMPARISON = flags.DEFINE_bool(
  'comparison', False, 'Reward and entropy after equally many samples.'
)
_LEADERBOARD = flags.DEFINE_integer(
  'leaderboard', 0, 'Tokens to compare at.', lower_bound=0
)
_EXCERPT = flags.DEFINE_string('excerpt', None, 'JSONL to write.')
_PUBLISHED = flags.DEFINE_string('published', None, 'Numbers as published.')
_MIXED = flags.DEFINE_bool(
  'allow_mixed', False, 'Mark mixed results instead of refusing them.'
)


def main(argv):
  """Prints the table."""
  del argv
  if _of_recipe():
    lines = published.runs_of(_PAPER.value, _WORKDIR.value)
    found = published.cells(_PAPER.value, lines, _SCALE.value or 'paper')
    print(cells.render(found, _FORMAT.value), end='')
    return
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
  if _LEADERBOARD.value and _COMPARISON.value:
    raise ValueError('give --leaderboard or --comparison, not both')
  if (_LEADERBOARD.value or _COMPARISON.value) and _BASELINE.value is None:
    raise ValueError('--baseline is missing: the row to compare others with')
  check_excerpt()
  rows, mixed = result_checks.read_rows(_WORKDIR.value, None, _MIXED.value)
  source = leaderboard if _LEADERBOARD.value else cells
  for line in source.failures(rows):
    print(line, file=sys.stderr)
  if _LEADERBOARD.value:
    found = leaderboard.cells(rows, _BASELINE.value, _LEADERBOARD.value, mixed)
    small = leaderboard.excerpt(rows)
  elif _COMPARISON.value:
    found = cells.comparison(rows, _BASELINE.value, mixed)
    small = cells.excerpt(rows)
  else:
    values = cells.by_setting(rows, _METRIC.value)
    found = cells.lines(values, _BASELINE.value, published_numbers(rows), mixed)
    small = cells.excerpt(rows, _METRIC.value)
  if _EXCERPT.value:
    outputs.write_rows(_EXCERPT.value, map(metrics.to_json, small))
  print(cells.render(found, _FORMAT.value), end='')


def _of_recipe() -> bool:
  """Returns whether the table is that of a recipe."""
  if _SCALE.value and not _PAPER.value:
    raise ValueError('--scale is of --paper: give its name')
  paper = _PAPER.value
  only = paper in recipe_lib.names() and paper not in sweep_runs.papers()
  return bool(_SCALE.value) or only


def published_numbers(rows: list[dict]) -> dict[str, float] | None:
  """The numbers of --published.

  Raises: ValueError for a file that holds no object, or names no row.
  """
  path = _PUBLISHED.value
  if not path:
    return None
  with open(path, encoding='utf-8') as file:
    text = file.read()
  try:
    found = json.loads(text)
  except ValueError as error:
    raise ValueError(f'--published={path} is not JSON: {error}') from None
  if not isinstance(found, dict):
    raise ValueError(f'--published={path}: expected {{row name: number}}')
  known = dict.fromkeys(cells.row_names(rows))  # failed ones, too
  if lost := [name for name in found if name not in known]:
    raise ValueError(
      f'--published={path} has {", ".join(lost)}: no row is called so. Known: '
      f'{", ".join(known)}'
    )
  return found


def check_excerpt() -> None:
  """Raises ValueError where --excerpt cannot be, or would replace results."""
  if _EXCERPT.value is None:
    return
  outputs.check_file('excerpt', _EXCERPT.value)
  results = result_checks.results_file(_WORKDIR.value)
  if os.path.realpath(_EXCERPT.value) == os.path.realpath(results):
    raise ValueError(
      f'--excerpt={_EXCERPT.value} would replace the results: give another'
    )


if __name__ == '__main__':
  configuration.run(main)
