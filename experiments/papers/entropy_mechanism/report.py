"""Prints the tables and draws the figures of the entropy mechanism.

  python -m experiments.papers.entropy_mechanism.report
    --workdir=runs/entropy_mechanism
    --excerpt=experiments/papers/entropy_mechanism/results.jsonl
  python -m experiments.papers.entropy_mechanism.report
    --workdir=experiments/papers/entropy_mechanism/results.jsonl
    --update=experiments/papers/entropy_mechanism/README.md
    --figures=experiments/papers/entropy_mechanism

Means over seeds with 95% intervals: the fit of accuracy to exp(entropy) and its
prediction from the first 36% of training, the covariance identity, and held-out
accuracy, entropy and length after equally many tokens. --update replaces each
table between its markers in the given files.
"""

import pathlib

from absl import flags

from experiments.flags import configuration
from experiments.papers.entropy_mechanism import figures
from experiments.papers.entropy_mechanism import tables as entropy_tables
from experiments.tables import cells as cells_lib

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the sweep, or a JSONL.', required=True
)
_EXCERPT = flags.DEFINE_string('excerpt', None, 'JSONL to write.')
_UPDATE = flags.DEFINE_list('update', [], 'Markdown files.')
_FIGURES = flags.DEFINE_string('figures', None, 'Folder for PNGs.')
_MIXED = flags.DEFINE_bool('allow_mixed', False, 'Allow several commits.')


def main(argv):
  """Prints the tables and writes the requested files."""
  del argv
  lines = entropy_tables.read(_WORKDIR.value, _MIXED.value)
  if _EXCERPT.value:
    entropy_tables.excerpt(lines, _EXCERPT.value)
  for failure in cells_lib.failures(lines):
    print(failure)
  found = entropy_tables.all_tables(lines)
  for name, cells in found.items():
    print(f'{name}\n\n{cells_lib.render(cells, "markdown")}')
  for name in _UPDATE.value:
    path = pathlib.Path(name)
    path.write_text(cells_lib.with_tables(path.read_text(), found))
  if _FIGURES.value:
    for path in figures.draw(lines, _FIGURES.value):
      print(path)


if __name__ == '__main__':
  configuration.run(main)
