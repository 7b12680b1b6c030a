"""The results of a language model: accuracies, intervals, ten answers."""

from typing import Any

import numpy as np
import rich.console
import rich.table
import rich.text

from experiments.tables import intervals

NUM_SHOWN = 10


def gains(before: dict[str, Any], after: dict[str, Any]) -> list[tuple]:
  """(measure, before, after, their paired comparison over problems).

  Responses that were not judged (NaN) count nowhere, and neither do problems
  without a judged response on both sides. The interval of the comparison does
  not tell of other seeds of training.
  """
  rows = []
  for name in ('greedy', 'samples'):
    old_N, new_N = _of_problems(before[name]), _of_problems(after[name])
    both_N = np.isfinite(old_N) & np.isfinite(new_N)
    old_N, new_N = old_N[both_N], new_N[both_N]
    found = intervals.difference(new_N, old_N)
    rows.append((name, old_N.mean(), new_N.mean(), found))
  return rows


def _of_problems(outcomes):
  """Mean of the judged responses of each problem, NaN if there is none, [N]."""
  outcome_NK = np.asarray(outcomes, np.float64).reshape(len(outcomes), -1)
  judged_NK = ~np.isnan(outcome_NK)
  count_N = judged_NK.sum(axis=1)
  total_N = np.where(judged_NK, outcome_NK, 0.0).sum(axis=1)
  return np.where(count_N > 0, total_N / np.maximum(count_N, 1), np.nan)


def show(before: dict[str, Any], after: dict[str, Any]) -> None:
  """Prints the table of gains, and answers to the same problems."""
  console = rich.console.Console(width=120)
  count = len(before['greedy'])
  table = rich.table.Table(title=f'{count} held-out word problems')
  for name in ('', 'before', 'after', 'difference', '95%'):
    table.add_column(name, justify='right' if name else 'left')
  for name, old, new, change in gains(before, after):
    interval = f'{change.low:+.1%} to {change.high:+.1%}'
    cells = f'{old:.1%}', f'{new:.1%}', f'{change.effect:+.1%}', interval
    table.add_row(name, *cells)
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
