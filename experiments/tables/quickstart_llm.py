"""What a language model learned: accuracies, intervals, ten answers."""

from typing import Any

import numpy as np
import rich.console
import rich.table
import rich.text

NUM_SHOWN = 10


def gains(before: dict[str, Any], after: dict[str, Any]) -> list[tuple]:
  """(measure, before, after, difference, half width of its 95% interval).

  The interval is that of a mean of paired differences over problems, by the
  normal approximation; it does not tell of other seeds of training.
  """
  rows = []
  for name, key in (('greedy', 'greedy'), ('samples', 'samples')):
    old, new = (np.asarray(x[key], np.float64) for x in (before, after))
    old, new = (x.reshape(len(x), -1).mean(axis=1) for x in (old, new))
    change = new - old
    half = 1.96 * change.std(ddof=1) / np.sqrt(len(change))
    rows.append((name, old.mean(), new.mean(), change.mean(), half))
  return rows


def show(before: dict[str, Any], after: dict[str, Any]) -> None:
  """Prints the table of gains, and answers to the same problems."""
  console = rich.console.Console(width=120)
  count = len(before['greedy'])
  table = rich.table.Table(title=f'{count} held-out word problems')
  for name in ('', 'before', 'after', 'difference', '95%'):
    table.add_column(name, justify='right' if name else 'left')
  for name, old, new, change, half in gains(before, after):
    interval = f'{change - half:+.1%} to {change + half:+.1%}'
    table.add_row(name, f'{old:.1%}', f'{new:.1%}', f'{change:+.1%}', interval)
  for key in ('entropy', 'sample_length'):
    table.add_row(key, f'{before[key]:.2f}', f'{after[key]:.2f}', '', '')
  console.print(table)
  answers = rich.table.Table(title='The first answers, before and after')
  for name in ('problem', 'before', 'after'):
    answers.add_column(name)
  for i in range(min(NUM_SHOWN, count)):
    answers.add_row(
      rich.text.Text(before['questions'][i]),
      _answer(before, i),
      _answer(after, i),
    )
  console.print(answers)


def _answer(found, i):
  """The first line of the greedy response, and whether it is right."""
  line = found['responses'][i].strip().split('\n')[0]
  right = found['greedy'][i] > 0
  return rich.text.Text(line, style='green' if right else 'red')
