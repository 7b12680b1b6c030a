"""Searches numbers of a configuration by Nelder-Mead; every point is a run.

python -m experiments.tools.search --config=configs/countdown.py
  --method=constrained_rlhf --set=model.value_head=True
  --set=model.num_values=3 --field=method.credit.Lagrangian.thresholds
  --start=0.5,0.9 --metric=evaluation/reward/mean --workdir=runs/thresholds

--field is a tuple of numbers, or one; --metric, of the last row of a run, is to
be as large as possible. Points are multiples of --resolution. The work
directory is that of a sweep: points that have a run are not run again, so the
same command continues a search. A failed run is worse than all others; if every
run failed, the exit code is 1.

Source: the search of thresholds of "Confronting Reward Model Overoptimization
with Constrained RLHF" (reflection 1, expansion 2, contraction and shrinking
1/2, end at a tolerance of 0.01, a resolution of 5e-3). There one
policy is trained on through all points, each until its rewards are within 5% of
the thresholds; here every point starts from the same policy.
"""

from collections.abc import Callable, Sequence
import os
import sys

from absl import flags
import numpy as np
from scipy import optimize

from experiments.flags import configuration, fields
from experiments.sweeps import grid
from experiments.sweeps import runs as sweep_runs

_CONFIG = flags.DEFINE_string('config', None, 'Configuration.', required=True)
_METHOD = flags.DEFINE_string('method', configuration.DEFAULT_METHOD, 'Method.')
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, the same in all runs.')
_FIELD = flags.DEFINE_string(
  'field', None, 'Path of a tuple of numbers, or of one.', required=True
)
_START = flags.DEFINE_list('start', None, 'Its first value.', required=True)
_STEP = flags.DEFINE_float(
  'step', 0.1, 'By which each corner of the first simplex differs.'
)
_RESOLUTION = flags.DEFINE_float(
  'resolution', 5e-3, 'Of a point: the step between two values.', 1e-12, 1e12
)
_METRIC = flags.DEFINE_string(
  'metric', None, 'To be as large as possible.', required=True
)
_RUNS = flags.DEFINE_integer('runs', 20, 'At most.', lower_bound=1)
_JITTED = flags.DEFINE_bool('jitted', False, 'Each run as one program.')
_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the runs.', required=True
)
_OWN = {'config': '--config', 'method': '--method'}
TOLERANCE = 0.01  # of the metric over a simplex
Point = tuple[float, ...]


def nelder_mead(
  score: Callable[[Point], float],
  start: Sequence[float],
  step: float,
  most: int,
  resolution: float = 5e-3,
) -> tuple[Point, float]:
  """(the best point, its score) of at most `most` points.

  score: to be maximised; asked once for each point, rounded to the resolution.
    NaN is worse than all numbers.
  """
  known: dict[Point, float] = {}

  def loss(x):
    point = tuple(rounded(v, resolution) for v in x)
    if point not in known:
      if len(known) == most:
        raise StopIteration
      found = score(point)
      known[point] = -np.inf if np.isnan(found) else found
    return -known[point]

  first = np.asarray(start, float)
  simplex = np.stack([first, *(first + step * np.eye(len(first)))])
  options = {
    'initial_simplex': simplex,
    'fatol': TOLERANCE,
    'xatol': np.inf,
    'maxfev': 10 * most,
  }
  try:
    optimize.minimize(loss, first, method='Nelder-Mead', options=options)
  except StopIteration:
    pass
  best = max(known, key=known.__getitem__)
  return best, known[best]


def rounded(value: float, resolution: float) -> float:
  """The nearest multiple of the resolution, in its decimals."""
  return float(f'{np.round(value / resolution) * resolution:.12g}')


def is_number(
  setting: sweep_runs.Setting, field: str, point: Sequence[float]
) -> bool:
  """Returns whether the field takes the one number of a point, not a tuple of
  it.

  Raises ValueError if it takes neither.
  """
  if len(point) > 1:
    return False
  try:
    _ = sweep_runs.Run({**setting, field: str(point[0])}).config
  except ValueError as error:
    try:
      _ = sweep_runs.Run({**setting, field: str(tuple(point))}).config
    except ValueError:
      raise error from None
    return False
  return True


def score_by_run(
  setting: sweep_runs.Setting,
  field: str,
  metric: str,
  workdir: str,
  jitted: bool,
  number: bool = False,
) -> Callable[[Point], float]:
  """The last value of the metric of a run with `field` at a point.

  number: the field is one number, not a tuple.
  Raises ValueError if a run that did not fail has no such metric.
  """

  def score(point):
    run = sweep_runs.Run({**setting, field: str(point[0] if number else point)})
    sweep_runs.execute_all([[run]], workdir, jitted)
    lines = {x['digest']: x for x in sweep_runs.results(workdir)}
    if run.digest not in lines:
      raise ValueError(
        f'{os.path.join(workdir, run.name)}: another process executes this '
        'run; search again when it has ended'
      )
    row = lines[run.digest]
    if 'failed' in row:
      found = -np.inf
    elif metric in row['last']:
      found = row['last'][metric]
    else:
      raise ValueError(
        f'--metric={metric} is not in the last row of {run.name}; it has '
        f'{sorted(row["last"])}'
      )
    print(f'{point} {found:.4f}', flush=True)
    return found

  return score


def first_point(
  texts: Sequence[str], step: float, resolution: float
) -> list[float]:
  """The numbers of --start.

  Raises ValueError for what are none, and where the resolution is too coarse
  to tell the corners of the first simplex apart.
  """
  try:
    start = [float(text) for text in texts]
  except ValueError as error:
    raise ValueError(f'--start={",".join(texts)}: {error}') from None
  if not start:
    raise ValueError('--start= has no number: give the first value')
  lost = [x for x in start if x and not rounded(x, resolution)]
  if not np.isfinite(step):
    raise ValueError(f'--step={step}: expected a finite number')
  if lost or abs(step) < resolution:
    what = f'--start={lost[0]}' if lost else f'--step={step}'
    raise ValueError(
      f'{what} is less than --resolution={resolution}, of which points are '
      'multiples: give a finer one'
    )
  return start


def main(argv):
  """Searches and prints every point, the best one last."""
  if len(argv) > 1:
    raise ValueError(f'unexpected arguments: {argv[1:]}')
  setting = {'config': _CONFIG.value, 'method': _METHOD.value}
  own = dict(fields.split(x, '--set') for x in fields.once(_SET.value))
  for name, flag in (*_OWN.items(), (_FIELD.value, '--field')):
    if name in own:
      raise ValueError(f'--set={name}={own[name]}: {flag} says which')
  setting |= own
  setting = grid.with_head(setting)
  start = first_point(_START.value, _STEP.value, _RESOLUTION.value)
  number = is_number(setting, _FIELD.value, start)
  score = score_by_run(
    setting,
    _FIELD.value,
    _METRIC.value,
    _WORKDIR.value,
    _JITTED.value,
    number,
  )
  best, found = nelder_mead(
    score, start, _STEP.value, _RUNS.value, _RESOLUTION.value
  )
  if found == -np.inf:
    results = os.path.join(_WORKDIR.value, sweep_runs.RESULTS)
    print(f'every run failed: {results}')
    sys.exit(1)
  value = best[0] if number else best
  print(f'best: {_FIELD.value}={value} with {_METRIC.value} {found:.4f}')


if __name__ == '__main__':
  configuration.run(main)
