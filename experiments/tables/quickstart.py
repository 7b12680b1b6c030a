"""The table and the picture of the quickstart."""

import os
from typing import Any

import rich.console
import rich.table

from experiments import plot
from rl_jax.records import metrics

COLUMNS = (
  'stage',
  'pass@1 greedy',
  'pass@8',
  'entropy',
  'length',
  'tokens/s',
  'steps',
  'seconds',
)


def cells(row: dict[str, Any]) -> list[str]:
  """A row of the table as text."""
  return [
    row['stage'],
    f'{row["pass_at_1"]:.1%}',
    f'{row["pass_at_8"]:.1%}',
    f'{row["entropy"]:.3f}',
    f'{row["sample_length"]:.2f}',
    f'{row["tokens_per_second"]:,.0f}',
    str(row.get('steps', '')),
    f'{row["seconds"]:.0f}' if 'seconds' in row else '',
  ]


def show(rows: list[dict[str, Any]]) -> None:
  """Prints the table of the stages."""
  table = rich.table.Table(title='Held-out pairs (500), 3-digit + and -')
  for name in COLUMNS:
    side = 'left' if name == 'stage' else 'right'
    table.add_column(name, justify=side, no_wrap=True)
  for row in rows:
    table.add_row(*cells(row))
  rich.console.Console(width=120).print(table)


def markdown(rows: list[dict[str, Any]]) -> str:
  """The same table as Markdown."""
  lines = [COLUMNS, ['---'] * len(COLUMNS), *map(cells, rows)]
  return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def plot_stages(workdir: str) -> str:
  """Curves of RL and of supervised training as PNG; returns the path."""
  out = os.path.join(workdir, 'curves.png')
  stages = {'GRPO': 'rl', 'supervised': 'supervised'}
  runs = {
    label: [metrics.read_jsonl(os.path.join(workdir, name, metrics.METRICS))]
    for label, name in stages.items()
  }
  for row in runs['supervised'][0]:
    row.pop('reward/mean', None)  # recorded responses are right
  plot.plot_curves(
    runs,
    out,
    x='seconds',
    metrics=('evaluation/pass_at_1', 'reward/mean', 'policy/entropy'),
    title='After the warm start: validation accuracy, reward, entropy',
  )
  return out
