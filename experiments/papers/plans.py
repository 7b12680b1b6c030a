"""Plans the rows of recipes on the pods that they name.

  python -m experiments.papers.plans
  python -m experiments.papers.plans --paper=dr_grpo --row=dr_grpo_1p5b
    --target=gpu:h100:1x1x8 --compiled

The first command writes experiments/papers/NAME/plan.jsonl of all recipes: for
each row and pod the memory by plan, hours by roofline, and the smallest number
of devices that would do; docs/reproductions shows them. The second adds what
the compilers of a pod say (see `experiments.plan`), which holds for all rows of
the same shapes.
"""

import json

from absl import app, flags

from experiments.flags import configuration
from experiments.papers import pods
from experiments.papers import recipe as recipe_lib

_PAPER = flags.DEFINE_string('paper', '', 'A recipe. Default: all.')
_ROW = flags.DEFINE_string('row', '', 'One of its rows. Default: all.')
_TARGET = flags.DEFINE_string('target', '', "One pod. Default: the recipe's.")
_COMPILED = flags.DEFINE_bool(
  'compiled', False, 'Compile the row for the target.'
)


def main(argv):
  """Plans all rows, or compiles one."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  papers = [_PAPER.value] if _PAPER.value else recipe_lib.names()
  if not _COMPILED.value:
    for paper in papers:
      pods.write(paper, list(pods.lines_of(paper, pods.read(paper))))
    return
  if not (_PAPER.value and _ROW.value and _TARGET.value):
    raise ValueError('--compiled: give --paper, --row and --target')
  paper, row, target = _PAPER.value, _ROW.value, _TARGET.value
  pods.place_of(pods.read(paper), row, target)
  found = pods.compiled_for(paper, row, target)
  lines = pods.read(paper)  # another process may have written meanwhile
  lines[pods.place_of(lines, row, target)] |= {'compiled': found}
  pods.write(paper, lines)
  print(json.dumps(found))


if __name__ == '__main__':
  configuration.run(main)
