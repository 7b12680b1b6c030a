"""Writes the committed results of the proxy from its work directory.

  python -m experiments.papers.proxy.excerpt --workdir=runs/proxy
    --out=experiments/papers/proxy/results.jsonl

A line a run: means over WINDOW iterations of the rule's score, of the learned
reward, and of the divergence from the untrained policy in nats a response.
"""

import json
import os
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration
from experiments.sweeps import runs as sweep_runs
from rl_jax.records import metrics

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the sweep.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'JSONL to write.', required=True)
KEPT = ('digest', 'name', 'setting', 'commit', 'device', 'tokens', 'failed')
LEARNED = ('learned', 'a', 'b', 'c')  # one reward model, or three
WINDOW = 10  # iterations


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
  """A line of results.jsonl, and the metrics of its run by windows."""
  learned = lambda r: [
    r[name] for one in LEARNED if (name := f'reward/{one}') in r
  ]
  course = {
    'gold': [r['reward/outcome'] for r in rows],
    'kl': [r['policy/kl_ref'] * r['rollout/length'] for r in rows],
  }
  if rows and learned(rows[0]):
    course['learned'] = [float(np.mean(learned(r))) for r in rows]
  return {name: row[name] for name in KEPT if name in row} | {
    'seconds': round(row.get('seconds', 0.0), 1),
    'course': {name: _windows(x) for name, x in course.items()},
  }


def _windows(values):
  whole = len(values) // WINDOW * WINDOW
  return np.reshape(values[:whole], (-1, WINDOW)).mean(1).round(4).tolist()


def main(argv):
  """Reads and writes."""
  del argv
  with open(_OUT.value, 'w') as file:
    for row in sweep_runs.results(_WORKDIR.value):
      path = os.path.join(_WORKDIR.value, row['name'], metrics.METRICS)
      rows = [r for r in metrics.read_jsonl(path) if 'reward/outcome' in r]
      file.write(json.dumps(metrics.to_json(line(row, rows))) + '\n')


if __name__ == '__main__':
  configuration.run(main)
