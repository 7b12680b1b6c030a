"""The claims of Cui et al. (2025) on entropy, judged by the runs of a world.

Accuracy R and entropy H are those of the sampled rows of each iteration, as in
their training curves; `entropy_mechanism` reads evaluations instead.
"""

from collections.abc import Iterable, Mapping, Sequence
import operator
from typing import Any

import numpy as np

from experiments.papers.entropy_mechanism import fits
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

FIRST = 0.15  # share of a run from which the rest is predicted
EARLY = 0.36  # in which the entropy is said to fall most
PREDICTED = 0.03  # root mean square error that counts as a prediction
FALL = 0.05  # nats of a fall that has a shape
FITTED = 0.9  # R^2 that counts as a law
LINES = ('exp(H)', 'H')

Line = dict[str, Any]
Cells = list[list[str]]
Numbers = dict[str, float]


def course(line: Line) -> dict[str, Sequence[float]]:
  """The course of a run by the names that `fits` reads."""
  found = line['course']
  return {
    'step': range(1, len(found['reward']) + 1),
    'entropy': found['entropy'],
    'avg_at_8': found['reward'],
  }


def numbers(line: Line) -> Numbers:
  """Coefficients, R^2 and errors of prediction from the first 15% of a run."""
  x = course(line)
  errors = fits.prediction_errors(x, FIRST)
  return fits.fit(x) | {f'error {name}': e for name, e in errors.items()}


def early(line: Line) -> float:
  """Share of the fall of entropy in the first 36% of the iterations."""
  entropy = np.array(line['course']['entropy'])
  cut = fits.first_part(course(line), EARLY) - 1
  return float((entropy[0] - entropy[cut]) / (entropy[0] - entropy[-1]))


def fall(line: Line) -> float:
  """Entropy of the first 15% of the iterations minus that of the last, nats."""
  entropy, count = (
    line['course']['entropy'],
    fits.first_part(course(line), FIRST),
  )
  return float(np.mean(entropy[:count]) - np.mean(entropy[-count:]))


def law(lines: Iterable[Line], methods: Sequence[str]) -> Cells:
  """R = -a exp(H) + b against a line in H, mean and 95% over the runs."""
  found: dict[str, list[Numbers]] = {}
  for line in lines:
    method = line['setting']['method']
    if method in methods and 'failed' not in line:
      found.setdefault(method, []).append(numbers(line))
  table: Cells = []
  for method, runs in found.items():
    if not table:
      table.append(['method', 'seeds', *runs[0]])
    cells = [interval([run[n] for run in runs]) for n in runs[0]]
    table.append([method, str(len(runs)), *cells])
  return table


def interval(values: Sequence[float]) -> str:
  """'0.861 [0.850, 0.872]': mean and 95% (Student)."""
  low, high = intervals.mean_interval(np.array(values))
  return f'{np.mean(values):.3f} {cells_lib.interval_text(low, high)}'


def claims(
  lines: Iterable[Line], methods: Mapping[str, Mapping[str, Sequence[str]]]
) -> Cells:
  """Claim by claim: the number, its 95% over seeds, and what it says.

  Args:
    lines: of the baseline, GRPO.
    methods: name -> claim -> (effect, interval, verdict), of methods that are
      to keep entropy.
  """
  lines = [line for line in lines if 'failed' not in line]
  fitted = [numbers(line) for line in lines]

  def of(name):
    return [run[name] for run in fitted]

  def less(name):
    ours, other = (np.array(of(f'{name} {x}')) for x in LINES)
    return ours - other

  falls = [fall(line) for line in lines]
  rows = [('entropy falls: nats', *_judged(falls, above=0.0))]
  if min(falls) > FALL:
    text = f'most of it early: share in the first {EARLY:.0%}'
    rows.append((text, *_judged([early(x) for x in lines], above=EARLY)))
  rows += [
    ('accuracy is -a exp(H) + b: R^2', *_judged(of('R^2 exp(H)'), FITTED)),
    ('fits better than a line in H: R^2', *_judged(less('R^2'), above=0.0)),
    (
      f'the first {FIRST:.0%} predict the rest: error',
      *_judged(of('error exp(H)'), below=PREDICTED),
    ),
    ('better than a line in H: error', *_judged(less('error'), below=0.0)),
  ]
  rows += [
    (f'{name}: {claim}', *cells)
    for name, by_claim in methods.items()
    for claim, cells in by_claim.items()
  ]
  return [['claim', 'measured', '95%', 'verdict'], *map(list, rows)]


def _judged(
  values: Sequence[float] | np.ndarray,
  above: float | None = None,
  below: float | None = None,
) -> tuple[str, str, str]:
  """(mean, interval, verdict): the whole interval must lie beyond the limit.

  contrary: it lies on the other side.
  """
  low, high = intervals.mean_interval(np.array(values))
  beyond, limit, near, far = operator.gt, above, low, high
  if below is not None:
    beyond, limit, near, far = operator.lt, below, high, low
  assert limit is not None  # one of the two is given
  verdict = 'not seen'
  if beyond(near, limit):
    verdict = 'confirmed'
  elif not beyond(far, limit):
    verdict = 'contrary'
  text = cells_lib.interval_text(low, high)
  return f'{np.mean(values):.3f}', text, verdict
