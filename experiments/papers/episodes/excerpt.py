"""Writes the committed results of the episodes from their work directory.

  python -m experiments.papers.episodes.excerpt --workdir=runs/episodes
    --out=experiments/papers/episodes/results.jsonl

A line a run that --out does not have yet: what the comparison reads, and of
every reward component the mean over all iterations and over the last tenth.
"""

import json
import os
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration
from experiments.sweeps import courses
from experiments.sweeps import runs as sweep_runs
from rl_jax.records import metrics

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the sweep.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'JSONL to continue.', required=True)
_KEPT = ('digest', 'name', 'setting', 'commit', 'device', 'failed')
_REWARD = 'reward/'


def components(rows: list[dict[str, Any]]) -> dict[str, float]:
  """'mean/NAME' and 'final/NAME' of each reward component."""
  late, found = rows[-max(1, len(rows) // 10) :], {}
  for key in rows[-1]:
    if key.startswith(_REWARD):
      name = key.removeprefix(_REWARD)
      found[f'mean/{name}'] = float(np.mean([row[key] for row in rows]))
      found[f'final/{name}'] = float(np.mean([row[key] for row in late]))
  return found


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
  """A line of results.jsonl and the metrics of its run, small enough."""
  last = {name: row['last'][name] for name in courses.NAMES}
  last |= components([r for r in rows if 'rollout/reward' in r])
  return {name: row[name] for name in _KEPT if name in row} | {
    'seconds': round(row['seconds'], 3),
    'last': {name: round(x, 5) for name, x in last.items()},
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
