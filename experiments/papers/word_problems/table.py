"""Table of policies on held-out word problems, as in README.md beside this.

  python -m experiments.evaluate --checkpoint=runs/grpo_0 --num_samples=8
    --out=outcomes/grpo_0.mawps_singleop.json
  python -m experiments.papers.word_problems.table --outcomes=outcomes
  python -m experiments.papers.word_problems.table --update

A file of --outcomes is named POLICY_SEED.SET.json; its line replaces the one of
this name in outcomes.jsonl, from which the table is made. --update writes it
into README.md, else it is printed. Intervals are 95% by Student's t over
problems, of the change against `untrained` on the same problems, seeds
averaged.
"""

from collections.abc import Callable, Iterable
import json
import pathlib
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration
from experiments.tables import cells, intervals

_OUTCOMES = flags.DEFINE_string('outcomes', None, 'Folder of files to take.')
_UPDATE = flags.DEFINE_bool('update', False, 'Write the table into README.md.')

FOLDER = pathlib.Path(__file__).parent
LINES = FOLDER / 'outcomes.jsonl'
BEFORE = 'untrained'
HEADER = (
  'problems, policy|seeds|greedy|change|mean of samples|change|any of samples'
).split('|')
Line = dict[str, Any]


def excerpt(path: pathlib.Path) -> Line:
  """A line of outcomes.jsonl from a file of `evaluate --out`.

  Texts with a digit for each problem: whether the greedy response is right, and
  how many of the samples are, if there were samples. What was not judged is
  wrong. Raises ValueError for other names, and more than 9 samples.
  """
  name, _, problems = path.stem.partition('.')
  policy, _, seed = name.rpartition('_')
  if not (policy and seed.isdigit() and problems):
    raise ValueError(f'{path}: the name must be POLICY_SEED.SET.json')
  rows = json.loads(path.read_text())
  line = {'problems': problems, 'policy': policy, 'seed': int(seed)}
  line['greedy'] = _text(rows['greedy'])
  if 'samples' in rows:
    line['samples'] = len(rows['samples'][0])
    if line['samples'] > 9:
      raise ValueError(f'{path}: more than 9 samples a problem')
    line['right'] = _text(np.nansum(np.array(rows['samples'], float), axis=1))
  return line


def _text(values):
  return ''.join(f'{x:.0f}' for x in np.nan_to_num(np.array(values, float)))


def table(lines: Iterable[Line]) -> list[list[str]]:
  """Header, and a row for each set of problems and policy."""
  found: dict[str, dict[str, list[Line]]] = {}
  for line in lines:
    policies = found.setdefault(line['problems'], {})
    policies.setdefault(line['policy'], []).append(line)
  rows = [
    [f'{problems}, {name}', *_numbers(seeds, policies[BEFORE])]
    for problems, policies in found.items()
    for name, seeds in policies.items()
  ]
  return [[*HEADER], *rows]


def _numbers(lines, before):
  columns = [str(len(lines)), *change(lines, before, 'greedy', 1)]
  if not all('right' in line for line in (*lines, *before)):
    return [*columns, '-', '-', '-']
  some = np.mean(_digits(lines, 'right') > 0)
  return [
    *columns,
    *change(lines, before, 'right', lines[0]['samples']),
    f'{some:.1%}',
  ]


def change(
  lines: list[Line], before: list[Line], measure: str, scale: int
) -> list[str]:
  """[mean, its change against the policy before], seeds averaged.

  measure: 'greedy', or 'right' with the number of samples as scale.
  """
  after_N, before_N = (
    _digits(x, measure).mean(axis=0) / scale for x in (lines, before)
  )
  mean = f'{after_N.mean():.1%}'
  if lines is before:
    return [mean, '-']
  found = intervals.difference(after_N, before_N)
  return [mean, f'{found.effect:+.1%} [{found.low:+.1%}, {found.high:+.1%}]']


def _digits(lines, measure):
  """[seeds, problems]."""
  return np.array([[int(x) for x in line[measure]] for line in lines], float)


def run(name: str, lines: pathlib.Path, make: Callable) -> None:
  """Takes new outcomes, then prints or writes the table `name`."""
  if _OUTCOMES.value:
    files = sorted(pathlib.Path(_OUTCOMES.value).glob('*.json'))
    if not files:
      raise ValueError(f'--outcomes={_OUTCOMES.value}: no file *.json')
    found = with_new(_read(lines), map(excerpt, files))
    lines.write_text(''.join(json.dumps(line) + '\n' for line in found))
  made = {name: make(_read(lines))}
  readme = FOLDER / 'README.md'
  if _UPDATE.value:
    readme.write_text(cells.with_tables(readme.read_text(), made))
  else:
    print(cells.render(made[name], 'markdown'), end='')


def with_new(lines: Iterable[Line], new: Iterable[Line]) -> list[Line]:
  """Merges lines in order; new ones replace those of the same setting."""
  found = {_order(line): line for line in (*lines, *new)}
  return [found[key] for key in sorted(found)]


def _read(path):
  return list(map(json.loads, path.read_text().splitlines()))


def _order(line):
  first = line['policy'] != BEFORE
  return line['problems'], first, line['policy'], line['seed']


def main(argv):
  """The table of outcomes.jsonl."""
  del argv
  run('outcomes', LINES, table)


if __name__ == '__main__':
  configuration.run(main)
