"""Runs methods under equal conditions and prints a table with intervals.

  python -m experiments.tools.compare_methods --config=configs/worlds/bandit.py
    --methods=all --seeds=5 --baseline=reinforce --workdir=runs/bandit

Runs a sweep over --methods and seeds and prints its `table --comparison`, after
equally many samples. Runs have no evaluation and one checkpoint at the end.
--jitted compiles one program for all seeds of a method, if the task verifies on
the device. Finished runs in --workdir are not run again.
"""

import sys

from absl import flags

from experiments.flags import configuration, fields
from experiments.sweeps import runs as sweep_runs
from experiments.tables import cells, result_checks

_CONFIG = flags.DEFINE_string('config', None, 'Configuration.', required=True)
_METHODS = flags.DEFINE_list('methods', ['all'], 'Names, or all.')
_BASELINE = flags.DEFINE_string('baseline', 'reinforce', 'Method.')
_SEEDS = flags.DEFINE_integer('seeds', 5, 'Runs of each method.', lower_bound=1)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, for all methods.')
_JITTED = flags.DEFINE_bool('jitted', False, 'One program for all seeds.')
_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the runs.', required=True
)

# What a run has by another flag.
_OWN = {'config': '--config', 'method': '--methods', 'seed': '--seeds'}


def common_fields(sets: list[str]) -> dict[str, str]:
  """The fields of all runs.

  Raises: ValueError for a field with two values, or one of another flag.
  """
  found = {}
  for text in fields.once(sets):
    path, value = fields.split(text, '--set')
    if path in _OWN:
      raise ValueError(f'--set={text}: {_OWN[path]} says which')
    found[path] = value
  return found


def methods(names: list[str], baseline: str) -> list[str]:
  """The baseline and the other methods.

  Raises: ValueError if there is no other.
  """
  if names == ['all']:
    names = configuration.names('configs.methods')
  others = [name for name in names if name != baseline]
  if not others:
    raise ValueError(
      f'--methods={",".join(names)}: expected a method other than --baseline='
      f'{baseline}'
    )
  return [baseline, *others]


def main(argv):
  """Runs everything, the baseline first, and prints Markdown."""
  del argv
  names = methods(_METHODS.value, _BASELINE.value)
  sweep = sweep_runs.equal_conditions(
    _CONFIG.value, names, common_fields(_SET.value), _SEEDS.value
  )
  members = sweep_runs.runs(sweep)
  parts = sweep_runs.programs(members, _JITTED.value)
  sweep_runs.execute_all(parts, _WORKDIR.value, _JITTED.value)
  wanted = {run.digest for run in members}
  rows = sweep_runs.results(_WORKDIR.value)
  rows = [row for row in rows if row['digest'] in wanted]
  for line in cells.failures(rows):
    print(line, file=sys.stderr)
  for run in members:
    if run.digest not in {row['digest'] for row in rows}:
      print(f'{run.name}: another process executes it', file=sys.stderr)
  # Of runs that an earlier commit finished.
  mixed = result_checks.mixtures(rows)
  found = cells.comparison(rows, f'method={_BASELINE.value}', mixed)
  print(cells.render(found, 'markdown'), end='')


if __name__ == '__main__':
  configuration.run(main)
