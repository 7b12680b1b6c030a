"""Writes the committed results of the episodes from their work directory.

  python -m experiments.papers.episodes.excerpt --workdir=runs/episodes
    --out=experiments/papers/episodes/results.jsonl

A line a run that --out does not have yet: what the comparison reads, and of
every reward component the mean over all iterations and over the last tenth, and
in the last evaluation, if there is one, of drawn and of greedy episodes, with
votes of samples also of the answer that most have; of games of OpenSpiel how
exploitable the last policy is.
"""

from typing import Any

import numpy as np

from experiments.flags import configuration
from experiments.sweeps import courses, excerpts
from rl_jax.measures import exploitability
from rl_jax.runs import directory
from rl_jax.tasks import OpenSpiel

_REWARD = 'reward/'
_MAJORITY = 'evaluation/majority_at_'
_EVALUATED = {
  'evaluation/sample_reward/': 'held_out/',
  'evaluation/reward/': 'greedy/',
}


def components(rows: list[dict[str, Any]]) -> dict[str, float]:
  """'mean/NAME' and 'final/NAME' of each reward component."""
  late, found = rows[-max(1, len(rows) // 10) :], {}
  for key in rows[-1]:
    if key.startswith(_REWARD):
      name = key.removeprefix(_REWARD)
      found[f'mean/{name}'] = float(np.mean([row[key] for row in rows]))
      found[f'final/{name}'] = float(np.mean([row[key] for row in late]))
  return found


def evaluated(row: dict[str, Any]) -> dict[str, float]:
  """'held_out/NAME' of drawn and 'greedy/NAME' of greedy responses.

  held_out/majority: of the answers that most samples of a prompt have.
  """
  found = {
    short + key.removeprefix(prefix): row[key]
    for prefix, short in _EVALUATED.items()
    for key in row
    if key.startswith(prefix)
  }
  votes = [row[key] for key in row if key.startswith(_MAJORITY)]
  if votes:
    found['held_out/majority'] = votes[-1]
  return found


def line(
  row: dict[str, Any], folder: str, rows: list[dict[str, Any]]
) -> dict[str, Any]:
  """A line of results.jsonl and the metrics of its run, small enough."""
  last = {name: row['last'][name] for name in courses.NAMES}
  last |= components([r for r in rows if 'rollout/reward' in r])
  last |= evaluated(rows[-1])
  if isinstance(directory.saved_config(folder).task, OpenSpiel):
    last |= exploitability.of_run(folder)
  return excerpts.kept(row) | {
    'seconds': round(row['seconds'], 3),
    'last': {name: round(x, 5) for name, x in last.items()},
  }


def main(argv):
  """Reads and writes."""
  del argv
  excerpts.write(line)


if __name__ == '__main__':
  excerpts.define_flags()
  configuration.run(main)
