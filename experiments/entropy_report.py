"""Tables of the entropy mechanism from the runs of a sweep, as Markdown.

python -m experiments.entropy_report --workdir=runs/entropy_mechanism

Three tables, intervals over seeds (95%, Student's t): the fit of accuracy to
exp(entropy) and its prediction from the first 36% of training, the covariance
identity, and held-out accuracy, entropy and length at the end.
"""

from collections.abc import Callable
import os
from typing import Any

from absl import flags
import numpy as np

from experiments import configuration, entropy_fits, tables
from experiments.sweeps import RESULTS
from rl_jax import metrics

_WORKDIR = flags.DEFINE_string('workdir', None, 'Sweep.', required=True)
END = ('pass_at_1', 'avg_at_8', 'pass_at_8', 'entropy', 'sample_length')


def interval(values: list[float]) -> str:
  """Mean and 95% interval."""
  low, high = tables.mean_interval(np.array(values))
  return f'{np.mean(values):.3f} [{low:.3f}, {high:.3f}]'


def table(
  runs: dict[str, list[list[dict]]], numbers: Callable[[list[dict]], dict]
) -> str:
  """One row for each setting; numbers makes the cells of one run."""
  lines = []
  for name, courses in runs.items():
    found = [numbers(rows) for rows in courses]
    if not lines:
      lines.append(['row', 'seeds', *found[0]])
    cells = [interval([f[key] for f in found]) for key in found[0]]
    lines.append([name, str(len(found)), *cells])
  return tables.render(lines, 'markdown')


def at_the_end(rows: list[dict[str, Any]]) -> dict[str, float]:
  """The last evaluation."""
  last = [row for row in rows if 'evaluation/entropy' in row][-1]
  return {name: last[f'evaluation/{name}'] for name in END}


def main(argv):
  """Prints the tables."""
  del argv
  lines = metrics.read_jsonl(os.path.join(_WORKDIR.value, RESULTS))
  for line in tables.failures(lines):
    print(line)
  lines = [line for line in lines if 'failed' not in line]
  runs: dict[str, list[list[dict]]] = {}
  for name, line in zip(tables.row_names(lines), lines, strict=True):
    path = os.path.join(_WORKDIR.value, line['name'], metrics.METRICS)
    runs.setdefault(name, []).append(metrics.read_jsonl(path))

  def fits(rows):
    course = entropy_fits.course(rows)
    errors = entropy_fits.prediction_errors(course)
    named = {f'error by {name}': value for name, value in errors.items()}
    return entropy_fits.fit(course) | named

  for numbers in (fits, entropy_fits.covariance_identity, at_the_end):
    print(table(runs, numbers))


if __name__ == '__main__':
  configuration.run(main)
