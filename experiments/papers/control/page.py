"""The tables of the page, from the committed results.

  python -m experiments.papers.control.page --update

Without --update the tables are printed.
"""

from collections.abc import Iterable, Sequence
import json
import pathlib
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration
from experiments.papers.control.claims import Results
from experiments.papers.control.rows import ROWS
from experiments.tables import intervals

HERE = pathlib.Path(__file__).parent
BEGIN, END = '<!-- table control: begin -->', '<!-- table control: end -->'

_UPDATE = flags.DEFINE_bool('update', False, 'Writes them into README.md.')


def table(results: Results) -> str:
  """Markdown: an arm a line, for every metric."""
  lines = ['| metric | arm | mean | 95% |', '|---|---|---|---|']
  for metric, arms in results.items():
    for arm, value_S in sorted(arms.items(), key=lambda x: np.mean(x[1])):
      low, high = intervals.mean_interval(np.asarray(value_S))
      mean = float(np.mean(value_S))
      lines.append(
        f'| {metric} | {arm} | {mean:.3g} | [{low:.3g}, {high:.3g}] |'
      )
  return '\n'.join(lines)


def results() -> list[dict[str, Any]]:
  """The committed lines."""
  text = (HERE / 'histories.jsonl').read_text()
  return [json.loads(line) for line in text.splitlines()]


def section(line: dict[str, Any]) -> str:
  """The heading, verdicts and numbers of a row."""
  row = ROWS[line['row']]
  verdicts = [f'- {text}: **{x}**' for text, x in line['verdicts'].items()]
  command = f'python -m experiments.papers.control.run --row={line["row"]}'
  command += ' --model=DIR' if row.takes_model else ''
  seeds = f'{line["seeds"]} seed' + ('' if line['seeds'] == 1 else 's')
  cost = f'{line["cpu_s"]} s of CPU, {line["wall_s"]} s of wall clock'
  parts = [
    f'## {row.title}',
    f'`{command}` ({seeds}, {cost})',
    '\n'.join(verdicts),
    table(line['values']),
  ]
  return '\n\n'.join(parts)


def tables(lines: Iterable[dict[str, Any]]) -> str:
  """All rows, in the order of the program."""
  found = {line['row']: line for line in lines}
  return '\n\n'.join(section(found[name]) for name in ROWS if name in found)


def with_tables(page: str) -> str:
  """The page with the tables of the committed results."""
  before, rest = page.split(BEGIN)
  after = rest.split(END)[1]
  return f'{before}{BEGIN}\n{tables(results())}\n{END}{after}'


def main(argv: Sequence[str]) -> None:
  """Prints the tables, or writes them."""
  del argv
  path = HERE / 'README.md'
  if _UPDATE.value:
    path.write_text(with_tables(path.read_text()))
  else:
    print(tables(results()))


if __name__ == '__main__':
  configuration.run(main)
