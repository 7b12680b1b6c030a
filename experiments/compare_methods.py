"""Runs methods under equal conditions and prints one table with intervals.

  python -m experiments.compare_methods --config=configs/bandit.py
    --methods=all --seeds=5 --baseline=reinforce --workdir=runs/bandit

All methods get the baseline's number of samples: a method that draws several
rounds an iteration (dynamic sampling, hints) is read only that far. `area` is
the mean reward over those samples, `final` that over their last tenth. The
interval is that of the difference to the baseline over seeds (paired t, 95%).
Runs are kept below --workdir: what is finished is not run again.
"""

import dataclasses
import os

from absl import flags, logging
import jax
import numpy as np

from experiments import configuration, tables
from rl_jax import metrics, overrides
from rl_jax.checkpoint import quiet_orbax
from rl_jax.config import CheckpointConfig, EvaluationConfig
from rl_jax.loop import Trainer

_CONFIG = flags.DEFINE_string('config', None, 'Module.', required=True)
_METHODS = flags.DEFINE_list('methods', ['all'], 'Names, or all.')
_BASELINE = flags.DEFINE_string('baseline', 'reinforce', 'Method.')
_SEEDS = flags.DEFINE_integer('seeds', 5, 'Runs of each method.')
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, for all methods.')
_WORKDIR = flags.DEFINE_string('workdir', None, 'Runs.', required=True)


def build(name: str, seed: int):
  """The configuration of one run: no evaluation, one checkpoint at its end."""
  config = configuration.build(_CONFIG.value, name, _SET.value)
  config = dataclasses.replace(
    config,
    seed=seed,
    evaluation=EvaluationConfig(every=0),
    checkpoint=CheckpointConfig(every=10**9, keep_best=0, keep_last=1),
  )
  if 'values' in config.method.needs():
    config = overrides.override(config, 'model.value_head', 'True')
  return config


def rows_of(name: str, seed: int) -> list[dict]:
  """Metrics of a run, which is made if it is not there yet."""
  config = build(name, seed)
  workdir = os.path.join(_WORKDIR.value, name, str(seed))
  path = os.path.join(workdir, metrics.METRICS)
  if os.path.exists(path):
    rows = metrics.read_jsonl(path)
    if rows and rows[-1]['step'] >= config.iterations:
      return rows
  Trainer(config, workdir).run()
  jax.clear_caches()  # hundreds of runs in one process would keep programs
  return metrics.read_jsonl(path)


def curve(rows: list[dict]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """(rounds so far, rounds, reward) by iteration."""
  rounds = np.array([row['rollout/rounds'] for row in rows], float)
  reward = np.array([row['reward/mean'] for row in rows])
  return np.cumsum(rounds), rounds, reward


def summary(rows: list[dict], budget: int) -> dict[str, float]:
  """Area, final reward and final entropy within budget rounds."""
  so_far, rounds, reward = curve(rows)
  used = np.flatnonzero(so_far <= budget)
  late = used[so_far[used] > 0.9 * budget]
  late = late if len(late) else used[-1:]
  return {
    'area': float(np.average(reward[used], weights=rounds[used])),
    'final': float(reward[late].mean()),
    'entropy': float(np.mean([rows[i]['policy/entropy'] for i in late])),
  }


def main(argv):
  """Runs everything, the baseline first, and prints Markdown."""
  del argv
  quiet_orbax()
  names = _METHODS.value
  if names == ['all']:
    names = configuration.names('configs.methods')
  names = [_BASELINE.value] + [n for n in names if n != _BASELINE.value]
  seeds = range(_SEEDS.value)
  budget, base = build(_BASELINE.value, 0).iterations, None
  lines = [
    '| method | area | to the baseline | 95% of the difference | final | '
    'entropy |',
    '|---|---|---|---|---|---|',
  ]
  for name in names:
    try:
      found = [summary(rows_of(name, seed), budget) for seed in seeds]
    except ValueError as error:
      lines.append(f'| {name} | not run: {str(error).splitlines()[0]} |||||')
      logging.warning('%s', lines[-1])
      continue
    area = np.array([f['area'] for f in found])
    base = area if base is None else base
    low, high = tables.mean_interval(area - base)
    mean = {key: np.mean([f[key] for f in found]) for key in found[0]}
    lines.append(
      f'| {name} | {mean["area"]:.3f} ± {area.std():.3f} | '
      f'{area.mean() / base.mean():.0%} | [{low:+.3f}, {high:+.3f}] | '
      f'{mean["final"]:.3f} | {mean["entropy"]:.2f} |'
    )
    logging.info('%s', lines[-1])
  print('\n'.join(lines))


if __name__ == '__main__':
  configuration.run(main)
