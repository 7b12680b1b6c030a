"""Curves of a report: reads runs, joins seeds, limits the number of points."""

from collections.abc import Sequence
import dataclasses
import json
import math
import os
from typing import Any

import numpy as np

from experiments import plot
from rl_jax import serialization
from rl_jax.config import ExperimentConfig
from rl_jax.records import metrics
from rl_jax.runs.directory import CONFIG_FILE

MAX_POINTS = 400  # per curve
X_AXES = {name: label for name, (_, label) in plot.X_AXES.items()}


@dataclasses.dataclass(frozen=True)
class Run:
  """One work directory."""

  path: str
  label: str  # shared by the seeds of a configuration
  rows: list[dict[str, Any]]
  config: ExperimentConfig | None
  notes: list[str]  # problems of the run, in words


def read_lines(path: str) -> tuple[list[dict[str, Any]], list[str]]:
  """(rows with a step, notes on the lines that are left out).

  An interrupted run may leave an incomplete last line.
  """
  name = os.path.basename(path)
  if not os.path.exists(path):
    return [], [f'{name} is missing']
  rows, notes = [], []
  with open(path, 'rb') as file:
    for number, line in enumerate(file, start=1):
      try:
        row = metrics.from_json(json.loads(line))
        if not isinstance(row, dict) or not isinstance(row.get('step'), int):
          raise ValueError('not an object with a step')
        rows.append(row)
      except (ValueError, RecursionError):
        complete = line.endswith(b'\n')
        what = 'is not a row' if complete else 'is incomplete'
        notes.append(f'line {number} of {name} {what}: left out')
  if not rows and not notes:
    notes.append(f'{name} is empty')
  return rows, notes


def read_runs(workdirs: Sequence[str], allow_mixed: bool) -> list[Run]:
  """The runs, labelled as in `plot`.

  Raises:
    ValueError: a path is not a work directory; one is given twice; the seeds of
      a label have different configurations and allow_mixed is false.
  """
  for path in workdirs:
    found = (CONFIG_FILE, metrics.METRICS, metrics.ROLLOUTS)
    if not any(os.path.exists(os.path.join(path, name)) for name in found):
      raise ValueError(
        f'{path!r} is not a work directory: it has none of {", ".join(found)}'
      )
  runs = [
    _read(path, label)
    for path, label in zip(workdirs, plot.labels(workdirs), strict=True)
  ]
  first: dict[str, Run] = {}
  for run in runs:
    one = first.setdefault(run.label, run)
    if one.config is None or run.config is None:
      continue
    lines = [
      line
      for line in serialization.difference(one.config, run.config)
      if not line.startswith('seed: ')
    ]
    if not lines:
      continue
    text = (
      f'{one.path} and {run.path} are not seeds of one configuration: '
      + '; '.join(lines)
    )
    if not allow_mixed:
      raise ValueError(f'{text}. --allow_mixed shows them nevertheless.')
    run.notes.append(f'MIXED: {text}')
  return runs


def _read(path: str, label: str) -> Run:
  rows, notes = read_lines(os.path.join(path, metrics.METRICS))
  config, file = None, os.path.join(path, CONFIG_FILE)
  try:
    with open(file) as text:
      config = serialization.from_json(text.read())
  except FileNotFoundError:
    notes.append(f'{CONFIG_FILE} is missing')
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    notes.append(f'{CONFIG_FILE} cannot be read: {str(error).splitlines()[0]}')
  return Run(path, label, rows, config, notes + _course(rows, config))


def _course(rows, config) -> list[str]:
  """Notes on an unfinished run and on values that are not finite."""
  notes = []
  if not rows:
    return []
  if config is not None and rows[-1]['step'] < config.iterations:
    notes.append(
      f'at iteration {rows[-1]["step"]} of {config.iterations}: unfinished'
    )
  skipped = sum(row.get('train/skipped', 0) > 0 for row in rows)
  if skipped:
    notes.append(f'{skipped} iterations had a step that was not finite')
  last = [
    name
    for name in ('reward/mean', 'train/loss', 'policy/entropy')
    if not math.isfinite(rows[-1].get(name, 0.0))
  ]
  if last:
    notes.append(f'FAILED: {", ".join(last)} not finite in the last row')
  return notes


def curves(runs: Sequence[Run]) -> list[dict[str, Any]]:
  """One entry per label, its seeds joined by iteration.

    label, seeds, iterations
    x        {axis: values}; None where unknown
    metrics  {name: {mean, low, high, gaps, bad}}

  More than MAX_POINTS iterations are averaged in buckets of consecutive
  iterations: `mean` is over the bucket and the seeds, `low` and `high` are the
  lowest and highest seed or, with a single seed, the lowest and highest value
  in the bucket; they are omitted if they equal the mean. `gaps` are points
  without a finite value, `bad` counts values that are not finite.
  """
  grouped: dict[str, list[Run]] = {}
  for run in runs:
    grouped.setdefault(run.label, []).append(run)
  return [_curve(label, seeds) for label, seeds in grouped.items()]


def _curve(label: str, seeds: list[Run]) -> dict[str, Any]:
  steps = sorted({row['step'] for run in seeds for row in run.rows})
  place = {step: i for i, step in enumerate(steps)}
  names = {name for run in seeds for row in run.rows for name in row}
  starts = np.linspace(0, len(steps), min(len(steps), MAX_POINTS) + 1)
  starts = starts.astype(int)[:-1]
  summary = {}
  for name in sorted(names):
    value_SI = np.zeros((len(seeds), len(steps)))
    there_SI = np.zeros(value_SI.shape, bool)
    for seed, run in enumerate(seeds):
      for row in run.rows:
        value = row.get(name)
        if name == plot.X_AXES['tokens'][0] and row['step'] == 0:
          value = 0
        if isinstance(value, (int, float)):
          value_SI[seed, place[row['step']]] = value
          there_SI[seed, place[row['step']]] = True
    if there_SI.any():
      summary[name] = _buckets(value_SI, there_SI, starts)
  x = {axis: summary.pop(name, None) for axis, (name, _) in plot.X_AXES.items()}
  return {
    'label': label,
    'seeds': len(seeds),
    'iterations': len(steps),
    'x': {axis: found['mean'] for axis, found in x.items() if found},
    'metrics': summary,
  }


def _buckets(value_SI, there_SI, starts) -> dict[str, Any]:
  """Mean and range of the finite values of every bucket."""
  finite_SI = there_SI & np.isfinite(value_SI)
  safe_SI = np.where(finite_SI, value_SI, 0.0)
  count_SK = np.add.reduceat(finite_SI.astype(int), starts, axis=1)
  present_K = np.add.reduceat(there_SI.any(0).astype(int), starts) > 0
  with np.errstate(invalid='ignore', divide='ignore', over='ignore'):
    mean_SK = np.add.reduceat(safe_SI, starts, axis=1) / count_SK
  some_K = (count_SK > 0).any(0)
  live_SK = count_SK > 0
  mean_K = np.where(live_SK, mean_SK, 0).sum(0) / np.maximum(live_SK.sum(0), 1)
  if len(value_SI) > 1:
    low_SI = high_SI = mean_SK
    inside, cuts = live_SK, np.arange(len(starts))
  else:
    low_SI = high_SI = value_SI
    inside, cuts = finite_SI, starts
  low_K = np.minimum.reduceat(
    np.where(inside, low_SI, np.inf).min(0, keepdims=True), cuts, axis=1
  )[0]
  high_K = np.maximum.reduceat(
    np.where(inside, high_SI, -np.inf).max(0, keepdims=True), cuts, axis=1
  )[0]
  found = {
    'mean': numbers(mean_K, some_K),
    'gaps': np.flatnonzero(present_K & ~some_K).tolist(),
    'bad': int((there_SI & ~finite_SI).sum()),
  }
  low, high = numbers(low_K, some_K), numbers(high_K, some_K)
  if low != found['mean'] or high != found['mean']:
    found |= {'low': low, 'high': high}
  return found


def numbers(values, there) -> list[float | None]:
  """Six significant digits, None where there is no finite value."""
  return [
    float(f'{value:.6g}') if ok and math.isfinite(value) else None
    for value, ok in zip(values, there, strict=True)
  ]
