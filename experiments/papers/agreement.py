"""Compares the graders of recipes with the released ones, on public files.

  python -m experiments.papers.agreement
  python -m experiments.papers.agreement --python=PYTHON --checkouts=FOLDER

The first command counts the right answers in the files of all recipes that
their own grader accepts. The second also grades made-up responses to the
problems (`experiments.papers.made_up`) with ours and with released code, which
runs in another environment (`experiments.papers.released_graders`). --update
writes both counts to experiments/papers/agreement.json, which
docs/reproductions reads. Files are in data/recipes, written by
`experiments.data`; those that are not there are named.
"""

import json
import pathlib

from absl import app, flags

from experiments.flags import configuration
from experiments.papers import grading, reasons, released_graders
from experiments.papers import recipe as recipe_lib

_FOLDER = flags.DEFINE_string('folder', recipe_lib.FOLDER, 'Of the files.')
_PYTHON = flags.DEFINE_string(
  'python', '', 'Interpreter that has the released graders.'
)
_CHECKOUTS = flags.DEFINE_string(
  'checkouts', '', 'Folder of repositories with graders that are in no package.'
)
_GRADERS = flags.DEFINE_list('graders', [], 'Of those. Default: all.')
_ROWS = flags.DEFINE_integer(
  'rows', 200, 'Of each file that responses are made up for.', lower_bound=1
)
_OUT = flags.DEFINE_string('out', '', 'JSON lines file for every difference.')
_UPDATE = flags.DEFINE_bool('update', False, 'Write the committed results.')


def show(golds, comparisons) -> None:
  """Prints both tables."""
  for line in golds:
    if line.get('missing'):
      print(f'{line["file"]}: not here')
    else:
      print(
        f'{line["file"]}: {line["golds"]} right answers, '
        f'{len(line["refused"])} refused, {line["unread"]} rows not read '
        f'({line["extract"]}, {line["verifier"]})'
      )
  for line in comparisons:
    count, differing = line['responses'], sum(line['differences'].values())
    open_ones = sum(
      number
      for name, number in line['differences'].items()
      if name.startswith(reasons.UNEXPLAINED)
    )
    print(
      f'{line["released"]}: {count} responses, {differing} differ, of which '
      f'{open_ones} without a reason'
    )


def main(argv):
  """Counts, compares, prints, and writes the results with --update."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  golds, comparisons, differing = grading.count_golds(_FOLDER.value), [], []
  script = pathlib.Path(released_graders.__file__)
  command = [_PYTHON.value, str(script), f'--checkouts={_CHECKOUTS.value}']
  for comparison in grading.COMPARISONS:
    if _PYTHON.value and comparison.released in (
      _GRADERS.value or {comparison.released}
    ):
      line, found = grading.compare(
        comparison, _FOLDER.value, _ROWS.value, command
      )
      comparisons.append(line)
      differing += found
  show(golds, comparisons)
  if _OUT.value:
    lines = [json.dumps(one) + '\n' for one in differing]
    pathlib.Path(_OUT.value).write_text(''.join(lines), encoding='utf-8')
  if _UPDATE.value:
    found = {'golds': golds, 'comparisons': comparisons, 'rows': _ROWS.value}
    text = json.dumps(found, indent=1) + '\n'
    pathlib.Path(grading.RESULTS).write_text(text, encoding='utf-8')


if __name__ == '__main__':
  configuration.run(main)
