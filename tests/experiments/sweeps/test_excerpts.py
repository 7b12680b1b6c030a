"""Small copies of a sweep's results."""

import json
import types

from experiments.sweeps import excerpts, runs
from rl_jax.records import metrics


def write(path, rows):
  path.parent.mkdir(exist_ok=True)
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))


def test_runs_that_are_new_are_added(tmp_path, monkeypatch):
  """The line has what `kept` gives; what is there stays."""
  results = [{'digest': d, 'name': d, 'host': 'x'} for d in ('a', 'b')]
  write(tmp_path / runs.RESULTS, results)
  for name in 'ab':
    write(tmp_path / name / metrics.METRICS, [{'iteration': 1}] * 2)
  out = tmp_path / 'out.jsonl'
  write(out, [{'digest': 'a', 'old': 1}])
  given = types.SimpleNamespace(workdir=str(tmp_path), out=str(out))
  monkeypatch.setattr(excerpts.flags, 'FLAGS', given)

  def line(row, folder, rows):
    return excerpts.kept(row) | {'rows': len(rows), 'folder': folder}

  for _ in range(2):
    excerpts.write(line)
    assert metrics.read_jsonl(out) == [
      {'digest': 'a', 'old': 1},
      {'digest': 'b', 'name': 'b', 'rows': 2, 'folder': str(tmp_path / 'b')},
    ]
