"""Measures the influence of methods in the worlds of episodes.

  python -m experiments.papers.episodes.acting
    --out=experiments/papers/episodes/influence.jsonl

Of each method in the world of its claim, by `experiments.influence`: means over
ITERATIONS of its own run, seed 0, against the method that it changes. Methods
that have a line are left out.
"""

import os

from absl import flags

from experiments.flags import configuration
from experiments.papers.episodes import sweep
from experiments.papers.worlds import influences
from rl_jax.records import metrics

ITERATIONS = 4


def main(argv):
  """Appends what is missing."""
  del argv
  path = flags.FLAGS.out
  lines = metrics.read_jsonl(path) if os.path.exists(path) else []
  known = {(line['world'], line['method']) for line in lines}
  for world, names in sweep.ACTING.items():
    for name in names:
      if (world, name) not in known:
        settings = sweep.WORLDS[world].settings()
        setting = next(x for x in settings if x['method'] == name)
        line = influences.of_a_run(world, setting, ITERATIONS)
        influences.append(path, line)


if __name__ == '__main__':
  flags.DEFINE_string('out', None, 'JSONL to write.', required=True)
  configuration.run(main)
