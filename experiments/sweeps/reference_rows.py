"""Adds reference results at equal cost to a sweep.

  python -m experiments.sweeps.reference_rows --paper=policy_loss_leaderboard
    --workdir=runs/leaderboard

Supervised training for as many iterations, with the rates and seeds of the
paper, and best-of-n and majority voting with the same number of samples of the
initial policy. Lines are written to the workdir's results.jsonl and replace
earlier reference lines.
"""

import importlib
import json
import os

from absl import flags

from experiments.flags import configuration
from experiments.sweeps import references
from experiments.sweeps import runs as sweep_runs
from rl_jax.records import metrics

_PAPER = flags.DEFINE_string('paper', None, 'Name of the paper.', required=True)
_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the sweep.', required=True
)


def main(argv):
  """Runs all references; replaces old ones at the end."""
  del argv
  sweep_runs.load(_PAPER.value)  # an unknown name is an error that lists all
  paper = importlib.import_module(f'experiments.papers.{_PAPER.value}.sweep')
  sets = [f'{path}={value}' for path, value in paper.SETTING.items()]
  config = configuration.build(paper.CONFIG, 'grpo', sets)
  seeds = range(paper.SEEDS)
  lines = references.best_of_n(config, seeds)
  lines += references.supervised(
    config, seeds, paper.RATES, os.path.join(_WORKDIR.value, 'references')
  )
  os.makedirs(_WORKDIR.value, exist_ok=True)
  path = os.path.join(_WORKDIR.value, sweep_runs.RESULTS)
  kept = metrics.read_jsonl(path) if os.path.exists(path) else []
  kept = [row for row in kept if row['digest'] is not None]
  with open(f'{path}.tmp', 'w') as file:
    for row in [*kept, *lines]:
      file.write(json.dumps(metrics.to_json(row)) + '\n')
  os.replace(f'{path}.tmp', path)


if __name__ == '__main__':
  configuration.run(main)
