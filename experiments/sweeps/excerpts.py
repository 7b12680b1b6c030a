"""Programs that write small copies of a sweep's results, for the repository."""

from collections.abc import Callable
import json
import os
from typing import Any

from absl import flags

from experiments.sweeps import runs
from rl_jax.records import metrics

_KEPT = ('digest', 'name', 'setting', 'commit', 'device', 'tokens', 'failed')
Row = dict[str, Any]


def define_flags() -> None:
  """--workdir and --out."""
  text = 'Directory of the sweep.'
  flags.DEFINE_string('workdir', None, text, required=True)
  flags.DEFINE_string('out', None, 'JSONL to continue.', required=True)


def kept(row: Row) -> Row:
  """The fields of a result line that every copy keeps."""
  return {name: row[name] for name in _KEPT if name in row}


def write(line: Callable[[Row, str, list[Row]], Row]) -> None:
  """Adds to --out a line for each run that it lacks.

  line: of the run's line in the sweep's results, its folder, and its metrics.
  """
  workdir, path = flags.FLAGS.workdir, flags.FLAGS.out
  known = metrics.read_jsonl(path) if os.path.exists(path) else []
  digests = {row['digest'] for row in known}
  with open(path, 'a') as file:
    for row in runs.results(workdir):
      if row['digest'] in digests:
        continue
      folder = os.path.join(workdir, row['name'])
      rows = metrics.read_jsonl(os.path.join(folder, metrics.METRICS))
      made = metrics.to_json(line(row, folder, rows))
      file.write(json.dumps(made) + '\n')
