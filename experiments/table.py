"""One table of a finished sweep: means, intervals, paired comparison.

  python -m experiments.table --workdir=runs/bandit_methods
    --metric=reward/mean --baseline=method=reinforce --format=markdown

Rows are the settings of DIR/results.jsonl without the seed. The interval of a
mean is Student's t over seeds (95%); a difference to the baseline is paired by
seed, with a bootstrap interval (10,000 draws of seeds). --published adds a
column: a JSON file {row name: number as published}.
"""

import json
import os

from absl import flags

from experiments import configuration, result_checks, tables
from experiments.sweeps import RESULTS
from rl_jax import metrics

_WORKDIR = flags.DEFINE_string('workdir', None, 'Sweep.', required=True)
_METRIC = flags.DEFINE_string('metric', 'reward/mean', 'Of the last row.')
_BASELINE = flags.DEFINE_string('baseline', None, 'Row name, as KEY=VALUE.')
_FORMAT = flags.DEFINE_enum(
  'format', 'markdown', ['markdown', 'csv', 'latex'], 'Of the table.'
)
_PUBLISHED = flags.DEFINE_string('published', None, 'JSON file.')
_MIXED = flags.DEFINE_bool(
  'allow_mixed', False, 'Mark a table of several commits, do not refuse it.'
)


def main(argv):
  """Prints the table."""
  del argv
  path = os.path.join(_WORKDIR.value, RESULTS)
  rows = metrics.read_jsonl(path) if os.path.exists(path) else []
  if not rows:
    raise ValueError(f'{path} holds no finished run')
  published = None
  if _PUBLISHED.value:
    with open(_PUBLISHED.value) as file:
      published = json.load(file)
  found = tables.by_setting(rows, _METRIC.value)
  mixed = result_checks.mixtures(rows)
  result_checks.check_mixtures(mixed, _MIXED.value)
  lines = tables.lines(found, _BASELINE.value, published, mixed)
  print(tables.render(lines, _FORMAT.value), end='')


if __name__ == '__main__':
  configuration.run(main)
