"""Writes the committed results of the proxy from its work directory.

  python -m experiments.papers.proxy.excerpt --workdir=runs/proxy
    --out=experiments/papers/proxy/results.jsonl

A line a run that --out does not have yet: means over WINDOW iterations of the
rule's score, of the learned reward, and of the divergence from the untrained
policy in nats a response. Of losses on pairs the same of samples of every
checkpoint, from iteration 0 on.
"""

from typing import Any

import numpy as np

from experiments.flags import configuration
from experiments.papers.proxy import checkpoints, pairs
from experiments.sweeps import excerpts

LEARNED = ('learned', 'a', 'b', 'c')  # one reward model, or three
WINDOW = 10  # iterations


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
  """A line of results.jsonl, and the metrics of its run by windows."""
  rows = [r for r in rows if 'reward/outcome' in r]

  def learned(r):
    return [r[name] for one in LEARNED if (name := f'reward/{one}') in r]

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


def line_of_pairs(
  row: dict[str, Any], rows: list[dict[str, Any]], course: dict[str, Any]
) -> dict[str, Any]:
  """The same of a loss on pairs, whose course was sampled.

  margin: log-probs of the chosen less the rejected response of a training pair
  in the last WINDOW iterations, less that of the first. trained: tokens.
  """
  margins = [
    r['preference/logp_win'] - r['preference/logp_lose']
    for r in rows
    if 'preference/logp_win' in r
  ]
  more = {'trained': int(sum(r.get('batch/trained_tokens', 0) for r in rows))}
  if margins:
    more['margin'] = round(float(np.mean(margins[-WINDOW:])) - margins[0], 4)
  return excerpts.kept(row) | {
    'seconds': round(row.get('seconds', 0.0), 1),
    **more,
    'course': course,
  }


def _windows(values):
  whole = len(values) // WINDOW * WINDOW
  return np.reshape(values[:whole], (-1, WINDOW)).mean(1).round(4).tolist()


def main(argv):
  """Reads and writes."""
  del argv
  courses = checkpoints.Courses()

  def made(row, folder, rows):
    if row['setting']['method'] in pairs.METHODS and 'failed' not in row:
      return line_of_pairs(row, rows, courses(row['setting'], folder))
    return line(row, rows)

  excerpts.write(made)
  courses.close()


if __name__ == '__main__':
  excerpts.define_flags()
  configuration.run(main)
