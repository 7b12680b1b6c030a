"""Writes the committed results of the worlds from their work directory.

  python -m experiments.papers.worlds.excerpt --workdir=runs/worlds
    --out=experiments/papers/worlds/results.jsonl

A line a run that --out does not have yet: the numbers of its last evaluation by
the names of `tables.METRICS`, in worlds of `looped` those of its columns and of
the first one, too; reward and generated tokens of every iteration.
"""

from typing import Any

from experiments.flags import configuration
from experiments.papers.worlds import looped
from experiments.papers.worlds import tables as worlds_tables
from experiments.sweeps import excerpts


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
  """A line of results.jsonl and the metrics of its run, small enough."""
  trained = [r for r in rows if 'rollout/reward' in r]
  evaluated = {'last': _numbers(rows[-1], worlds_tables.METRICS)}
  world = looped.WORLDS.get(row['setting'].get('config'))
  if world is not None:
    evaluated['last'] |= _numbers(rows[-1], world.columns)
    evaluated['first'] = _numbers(rows[0], world.columns)
  seconds = row.get('iteration_seconds')
  return excerpts.kept(row) | {
    'seconds': seconds and round(seconds, 3),
    **evaluated,
    'course': {
      'tokens': [int(r['rollout/tokens_total']) for r in trained],
      'reward': [round(r['reward/outcome'], 4) for r in trained],
      'entropy': [round(r['policy/entropy'], 3) for r in trained],
    },
  }


def _numbers(row, columns):
  """The metrics of a row by name; 'A - B' is the difference of two metrics."""
  found = {}
  for name, metric in columns.items():
    parts = metric.split(' - ')
    if all(part in row for part in parts):
      value, *less = (row[part] for part in parts)
      found[name] = round(value - sum(less), 4)
  return found


def main(argv):
  """Reads and writes."""
  del argv
  excerpts.write(lambda row, folder, rows: line(row, rows))


if __name__ == '__main__':
  excerpts.define_flags()
  configuration.run(main)
