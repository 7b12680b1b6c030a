"""Adds to a sweep what its methods have to beat, at equal cost.

  python -m experiments.sweeps.reference_rows --paper=policy_loss_leaderboard
    --workdir=runs/leaderboard

Supervised training on as many tokens, with the rates and seeds of the paper,
and best-of-n and majority of as many samples of the first policy. The lines go
to DIR/results.jsonl; those that are there are replaced.
"""

import importlib
import json
import os

from absl import flags

from experiments.flags import configuration
from experiments.sweeps import references
from experiments.sweeps import runs as sweep_runs
from rl_jax.records import metrics

_PAPER = flags.DEFINE_string('paper', None, 'Module.', required=True)
_WORKDIR = flags.DEFINE_string('workdir', None, 'Sweep.', required=True)


def main(argv):
  """Runs all references; replaces old ones at the end."""
  del argv
  sweep_runs.load(_PAPER.value)  # names the papers there are
  paper = importlib.import_module(f'experiments.papers.{_PAPER.value}.sweep')
  sets = [f'{path}={value}' for path, value in paper.SETTING.items()]
  config = configuration.build(paper.CONFIG, 'grpo', sets)
  seeds = range(paper.SEEDS)
  lines = references.best_of_n(config, seeds)
  lines += references.supervised(config, seeds, paper.RATES, paper.TOKENS)
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
