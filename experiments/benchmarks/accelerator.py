"""Prints the table of the lines that experiments/accelerator.sh collected.

python -m experiments.benchmarks.accelerator --lines=accelerator.jsonl

The predictions of experiments/benchmarks/predict.py, made before, are in
predicted.jsonl.
"""

from collections.abc import Sequence
import pathlib

from absl import flags

from experiments.flags import configuration
from rl_jax.records import metrics

# Field with the share of the rate that limits the stage.
LIMITS = {'generate': 'share_of_copy', 'update': 'share_of_matrix_product'}
# (stage, rows) -> target share on an accelerator.
BARS = {
  ('generate', 64): 0.30,
  ('generate', 512): 0.50,
  ('update', 64): 0.35,
  ('update', 512): 0.35,
}
PREDICTED = pathlib.Path(__file__).with_name('predicted.jsonl')
COLUMNS = (
  'model',
  'stage',
  'rows',
  'seconds',
  'predicted',
  'tokens/s',
  'share of limit',
  'wanted',
  'program GB',
  'predicted',
  'device GB',
  'compiled in',
  'torch, seconds',
  'ratio',
)


def table(lines: list[dict], predicted: Sequence[dict] = ()) -> str:
  """One row per cell: measured and predicted numbers, target, ratio to torch.

  The last measurement of a cell counts. The ratio is the seconds of
  transformers generate, or of a plain torch update, over ours.
  """
  cells: dict[tuple, dict[str, dict]] = {}
  for row in lines:
    systems = cells.setdefault(_key(row), {})
    systems[row.get('system', 'rl_jax')] = row
  expected = {_key(row): row for row in predicted}
  out = [_joined(COLUMNS), '|' + ' --- |' * len(COLUMNS)]
  reasons = []
  for (preset, stage, rows), systems in cells.items():
    ours, torch = systems.get('rl_jax', {}), systems.get('torch', {})
    before = expected.get((preset, stage, rows), {})
    bar = BARS.get((stage, rows))
    ratio = ''
    if 'seconds_median' in ours and 'seconds_median' in torch:
      ratio = f'{torch["seconds_median"] / ours["seconds_median"]:.2f}'
    out.append(
      _joined(
        (
          preset,
          stage,
          str(rows),
          _seconds(ours),
          _cell(before, 'seconds_predicted', '.3f'),
          _cell(ours, 'generated_tokens_per_second', ',.0f'),
          _cell(ours, LIMITS[stage], '.1%'),
          f'{bar:.0%}' if bar else '',
          _cell(ours.get('program_memory_gb', {}), stage, '.2f'),
          _cell(before, 'program_memory_gb', '.2f'),
          _cell(ours, 'device_memory_gb', '.2f'),
          _cell(ours.get('compile_seconds', {}), stage, '.1f'),
          _seconds(torch),
          ratio,
        )
      )
    )
    reasons += [
      f'not measured: {system} {stage} {preset} {rows}: {row["skipped"]}'
      for system, row in systems.items()
      if 'skipped' in row
    ]
  return '\n'.join([*out, '', *reasons])


def _key(row: dict) -> tuple[str, str, int]:
  return row['preset'], row['stage'], row['rows']


def _joined(cells) -> str:
  return '| ' + ' | '.join(cells) + ' |'


def _cell(row: dict, name: str, form: str) -> str:
  return '' if row.get(name) is None else format(row[name], form)


def _seconds(row: dict) -> str:
  skipped = 'not measured' if 'skipped' in row else ''
  return _cell(row, 'seconds_median', '.3f') or skipped


def main(argv):
  """Prints the table."""
  del argv
  rows = metrics.read_jsonl(_LINES.value)
  if not rows:
    raise ValueError(f'--lines={_LINES.value} has no lines')
  for number, row in enumerate(rows, start=1):
    known = isinstance(row, dict) and {'preset', 'rows'} <= row.keys()
    if not known or row.get('stage') not in LIMITS:
      raise ValueError(
        f'{_LINES.value}:{number} is not a line of a stage of '
        f'{", ".join(LIMITS)}'
      )
  print(table(rows, metrics.read_jsonl(PREDICTED)))


if __name__ == '__main__':
  _LINES = flags.DEFINE_string('lines', None, 'JSON lines.', required=True)
  configuration.run(main)
