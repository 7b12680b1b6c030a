"""Curves of a report: the metrics of every run on one grid of iterations.

The page joins the runs of a group, whichever the reader chooses, so runs stay
apart here.
"""

import collections
from collections.abc import Sequence
import math
import os
from typing import Any

import numpy as np
import scipy.stats

from experiments import plot
from experiments.reports import labels as labels_lib
from experiments.reports.workdirs import Run
from experiments.tables import intervals

MAX_POINTS = 400  # of a curve
MAX_NUMBERS = 2_000_000  # of all curves of a page
X_AXES = {name: label for name, (_, label) in plot.X_AXES.items()}

Curve = dict[str, Any]


def collect(runs: Sequence[Run]) -> dict[str, Any]:
  """The data of the page's curves.

    steps       iterations of the points; with more than MAX_POINTS iterations
                those of buckets of neighbours
    iterations  how many there are
    runs        a `Curve` for each run
    quantiles   Student's t of 95% by degrees of freedom: runs of a group - 1

  Fields of a curve:
    name, label    unique, and shared by the seeds of a configuration
    fields         {short name: value} of what differs between the runs
    x              {axis: values}; None where unknown
    metrics        {metric: {mean, low, high, gaps, bad}}: mean of each bucket,
                   its lowest and highest value (left out if they equal it),
                   buckets without a finite value, and how many values are not
                   finite
  """
  steps = sorted({row['step'] for run in runs for row in run.rows})
  metrics = {name for run in runs for row in run.rows for name in row}
  most = MAX_NUMBERS // max(1, len(runs) * len(metrics))
  count = min(len(steps), max(40, min(MAX_POINTS, most)))
  starts = np.linspace(0, len(steps), count + 1).astype(int)[:-1]
  place = {step: i for i, step in enumerate(steps)}
  found = []
  for run, name, values in zip(runs, names(runs), fields(runs), strict=True):
    curve = _curve(run, place, starts)
    found.append({'name': name, 'label': run.label, 'fields': values, **curve})
  parts = np.split(np.array(steps), starts[1:]) if steps else []
  t = scipy.stats.t.ppf(0.5 + intervals.LEVEL / 2, np.arange(len(runs)))
  return {
    'steps': numbers([part.mean() for part in parts], np.ones(len(parts))),
    'iterations': len(steps),
    'runs': found,
    'quantiles': numbers(t, np.arange(len(runs)) > 0),
  }


def names(runs: Sequence[Run]) -> list[str]:
  """A name for each run: its label, with the seed if several share it."""
  count = collections.Counter(run.label for run in runs)
  found = []
  for run in runs:
    name = run.label
    if count[name] > 1:
      folder = os.path.basename(os.path.normpath(run.path))
      seed = f'seed {run.config.seed}' if run.config else folder
      name = f'{name}, {seed}'
    found.append(name)
  repeats = [found[:i].count(name) for i, name in enumerate(found)]
  return [
    f'{name} ({run.path})' if n else name
    for name, run, n in zip(found, runs, repeats, strict=True)
  ]


def fields(runs: Sequence[Run]) -> list[dict[str, str]]:
  """Short name -> value, of what differs between runs, and their seeds."""
  known = {run.label: run for run in runs if run.config is not None}
  values = [{}]
  if len(known) > 1:
    values = labels_lib.fields(
      [run.config for run in known.values() if run.config is not None],
      [run.method for run in known.values()],
    )
  of_label = dict(zip(known, values, strict=False))
  seeds = {run.config.seed for run in runs if run.config is not None}
  return [
    dict(of_label.get(run.label, {}))
    | ({'seed': str(run.config.seed)} if run.config and len(seeds) > 1 else {})
    for run in runs
  ]


def _curve(run: Run, place: dict[int, int], starts: np.ndarray) -> Curve:
  """The axes and metrics of one run."""
  summary = {}
  for name in sorted({name for row in run.rows for name in row} - {'step'}):
    value_I, there_I = np.zeros(len(place)), np.zeros(len(place), bool)
    for row in run.rows:
      value = row.get(name)
      if name == plot.X_AXES['tokens'][0] and row['step'] == 0:
        value = 0
      if isinstance(value, (int, float)):
        value_I[place[row['step']]] = value
        there_I[place[row['step']]] = True
    if there_I.any():
      summary[name] = _buckets(value_I, there_I, starts)
  x = {axis: summary.pop(name, None) for axis, (name, _) in plot.X_AXES.items()}
  return {
    'x': {axis: found['mean'] for axis, found in x.items() if found},
    'metrics': summary,
  }


def _buckets(
  value_I: np.ndarray, there_I: np.ndarray, starts: np.ndarray
) -> dict[str, Any]:
  """Mean and range of the finite values of every bucket."""
  finite_I = there_I & np.isfinite(value_I)
  count_K = np.add.reduceat(finite_I.astype(int), starts)
  present_K = np.add.reduceat(there_I.astype(int), starts) > 0
  some_K = count_K > 0
  with np.errstate(over='ignore'):
    sum_K = np.add.reduceat(np.where(finite_I, value_I, 0.0), starts)
  low_K, high_K = (
    extreme.reduceat(np.where(finite_I, value_I, other), starts)
    for extreme, other in ((np.minimum, np.inf), (np.maximum, -np.inf))
  )
  found = {
    'mean': numbers(sum_K / np.maximum(count_K, 1), some_K),
    'gaps': np.flatnonzero(present_K & ~some_K).tolist(),
    'bad': int((there_I & ~finite_I).sum()),
  }
  low, high = numbers(low_K, some_K), numbers(high_K, some_K)
  if low != found['mean'] or high != found['mean']:
    found |= {'low': low, 'high': high}
  return found


def ends(data: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
  """First and last value of metrics, as text, mean over the runs of a label."""
  labels = list(dict.fromkeys(run['label'] for run in data['runs']))
  rows = []
  for name in names:
    cells = []
    for label in labels:
      means = [
        run['metrics'][name]['mean']
        for run in data['runs']
        if run['label'] == label and name in run['metrics']
      ]
      points = [
        np.mean([x for x in point if x is not None])
        for point in zip(*means, strict=True)
        if any(x is not None for x in point)
      ]
      cells.append(
        f'{points[0]:.4g} \u2192 {points[-1]:.4g}' if points else 'none'
      )
    if any(name in run['metrics'] for run in data['runs']):
      rows.append((name, cells))
  return {'labels': labels, 'rows': rows}


def numbers(values, there) -> list[float | None]:
  """Six significant digits, None where there is no finite value."""
  return [
    float(f'{value:.6g}') if ok and math.isfinite(value) else None
    for value, ok in zip(values, there, strict=True)
  ]
