"""Writes the committed results of the proxy from its work directory.

  python -m experiments.papers.proxy.excerpt --workdir=runs/proxy
    --out=experiments/papers/proxy/results.jsonl

A line a run that --out does not have yet: means over WINDOW iterations of the
rule's score, of the learned reward, and of the divergence from the untrained
policy in nats a response.
"""

from typing import Any

import numpy as np

from experiments.flags import configuration
from experiments.sweeps import excerpts

LEARNED = ('learned', 'a', 'b', 'c')  # one reward model, or three
WINDOW = 10  # iterations


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
  """A line of results.jsonl, and the metrics of its run by windows."""
  rows = [r for r in rows if 'reward/outcome' in r]
  learned = lambda r: [
    r[name] for one in LEARNED if (name := f'reward/{one}') in r
  ]
  course = {
    'gold': [r['reward/outcome'] for r in rows],
    'kl': [r['policy/kl_ref'] * r['rollout/length'] for r in rows],
  }
  if rows and learned(rows[0]):
    course['learned'] = [float(np.mean(learned(r))) for r in rows]
  return excerpts.kept(row) | {
    'seconds': round(row.get('seconds', 0.0), 1),
    'course': {name: _windows(x) for name, x in course.items()},
  }


def _windows(values):
  whole = len(values) // WINDOW * WINDOW
  return np.reshape(values[:whole], (-1, WINDOW)).mean(1).round(4).tolist()


def main(argv):
  """Reads and writes."""
  del argv
  excerpts.write(lambda row, folder, rows: line(row, rows))


if __name__ == '__main__':
  excerpts.define_flags()
  configuration.run(main)
