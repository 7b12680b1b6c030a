"""Writes the committed results of the worlds from their work directory.

  python -m experiments.papers.worlds.excerpt --workdir=runs/worlds
    --out=experiments/papers/worlds/results.jsonl

A line a run that --out does not have yet: the numbers of its last evaluation by
the names of `tables.METRICS`, reward and generated tokens of every iteration.
"""

import json
import os
from typing import Any

from absl import flags

from experiments.flags import configuration
from experiments.papers.worlds import tables as worlds_tables
from experiments.sweeps import runs as sweep_runs
from rl_jax.records import metrics

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the sweep.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'JSONL to continue.', required=True)
KEPT = ('digest', 'name', 'setting', 'commit', 'device', 'failed')


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
  """A line of results.jsonl and the metrics of its run, small enough."""
  trained = [r for r in rows if 'rollout/reward' in r]
  last = {
    name: round(rows[-1][metric], 4)
    for name, metric in worlds_tables.METRICS.items()
    if metric in rows[-1]
  }
  seconds = row.get('iteration_seconds')
  return {name: row[name] for name in KEPT if name in row} | {
    'seconds': seconds and round(seconds, 3),
    'last': last,
    'course': {
      'tokens': [int(r['rollout/tokens_total']) for r in trained],
      'reward': [round(r['reward/outcome'], 4) for r in trained],
      'entropy': [round(r['policy/entropy'], 3) for r in trained],
    },
  }


def main(argv):
  """Reads and writes."""
  del argv
  path = _OUT.value
  known = metrics.read_jsonl(path) if os.path.exists(path) else []
  digests = {row['digest'] for row in known}
  with open(path, 'a') as file:
    for row in sweep_runs.results(_WORKDIR.value):
      if row['digest'] in digests:
        continue
      path = os.path.join(_WORKDIR.value, row['name'], metrics.METRICS)
      found = line(row, metrics.read_jsonl(path))
      file.write(json.dumps(metrics.to_json(found)) + '\n')


if __name__ == '__main__':
  configuration.run(main)
