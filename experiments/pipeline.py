"""Runs trainings in sequence: each stage begins where an earlier one ended.

python -m experiments.pipeline --pipeline=tulu3 --workdir=runs/tulu3

A pipeline is a file of configs/pipelines, or one of yours, with `get_stages()`:
each stage is one command of experiments, with a folder of its own below
--workdir. Finished stages are skipped; one that was interrupted, by Ctrl-C,
SIGTERM or a crash, continues as its command does, bit for bit. pipeline.json
has the commands that are finished, and report.md their last metrics. On a
cluster run the commands that --print_commands shows, one job each. --seed
changes the seeds of all stages; give every seed its own --workdir.
"""

import json
import os
import re
import shlex
import sys
import time
from typing import Any

from absl import flags

from experiments.flags import configuration
from experiments.pipelines.stages import commands, load
from experiments.sweeps import children
from rl_jax.records import metrics

_PIPELINE = flags.DEFINE_string(
  'pipeline', None, 'NAME of configs/pipelines, or PATH.py.', required=True
)
_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Folder of the stages.', required=True
)
_PRINT = flags.DEFINE_bool(
  'print_commands', False, 'Print the commands of the stages and exit.'
)
_SEED = flags.DEFINE_integer('seed', 0, 'Of all stages.', lower_bound=0)
STATE, REPORT = 'pipeline.json', 'report.md'
SHOWN = ('step', 'reward/mean', 'evaluation/pass_at_1', 'time/wall_seconds')
_OF_SET = re.compile(r'evaluation/[^/]+/pass_at_1').fullmatch


def main(argv):
  """Runs what is not finished and writes the report."""
  del argv
  stages, workdir = load(_PIPELINE.value), _WORKDIR.value
  planned = commands(stages, workdir, _SEED.value)
  if _PRINT.value:
    for command in planned.values():
      print(shlex.join(['python', *command]))
    return
  os.makedirs(workdir, exist_ok=True)
  path = os.path.join(workdir, STATE)
  done = finished(path, planned)
  for name, command in planned.items():
    if name in done:
      continue
    print(f'--- {name}: {shlex.join(["python", *command])}', flush=True)
    started = time.time()
    binary = command[1].removeprefix('experiments.')
    (code,) = children.run_all([children.program(binary, *command[2:])])
    if code:
      print(f'stage {name!r} {ended(code)}', file=sys.stderr)
      sys.exit(code if code > 0 else 128 - code)
    seconds = round(time.time() - started, 1)
    done[name] = {'command': command, 'seconds': seconds}
    with open(path + '.tmp', 'w') as file:
      json.dump(done, file, indent=2)
    os.replace(path + '.tmp', path)
  text = report(workdir, done)
  with open(os.path.join(workdir, REPORT), 'w') as file:
    file.write(text)
  print(text, end='')


def ended(code: int) -> str:
  """Returns how a stage has ended, and what to do: 1 and 2 are errors that it
  names.
  """
  again = 'run the same command to continue it'
  if code in (1, 2):
    again = f'repair what it says, then {again}'
  return f'ended with exit code {code}: {again}'


def finished(path: str, planned: dict[str, list[str]]) -> dict[str, Any]:
  """The finished stages by pipeline.json.

  Raises: ValueError if a finished stage has another command today.
  """
  if not os.path.exists(path):
    return {}
  try:
    with open(path) as file:
      done = json.load(file)
    commands_of = {name: entry['command'] for name, entry in done.items()}
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise ValueError(
      f'{path} is not a record of finished stages ({error!r}): remove it '
      'to run all of them again'
    ) from None
  for name, command in commands_of.items():
    if planned.get(name) != command:
      raise ValueError(
        f'{path}: stage {name!r} is finished with another command:\n  '
        f'{shlex.join(command)}\nUse another --workdir, or remove the '
        'entry and the folders of this and all later stages'
      )
  return done


def report(workdir: str, done: dict[str, Any]) -> str:
  """A table of the stages with their last metrics, where they write some."""
  rows: dict[str, dict[str, Any]] = {name: {} for name in done}
  for name, row in rows.items():
    path = os.path.join(workdir, name, metrics.METRICS)
    if os.path.exists(path):
      for line in metrics.read_jsonl(path):
        row |= line
  of_sets = {key for row in rows.values() for key in row if _OF_SET(key)}
  shown = [*SHOWN, *sorted(of_sets)]
  lines = [
    '| stage | ' + ' | '.join(shown) + ' |',
    '|---' * (1 + len(shown)) + '|',
  ]
  for name, row in rows.items():
    cells = (f'{row[key]:.4g}' if key in row else '' for key in shown)
    lines.append(f'| {name} | ' + ' | '.join(cells) + ' |')
  return '\n'.join(lines) + '\n'


if __name__ == '__main__':
  configuration.run(main)
