"""The Markdown table of experiments/accelerator.sh."""

import json

# (stage, rows) -> least share that we want to see on an accelerator.
BARS = {
  ('generate', 64): 0.30,
  ('generate', 512): 0.50,
  ('update', 64): 0.35,
  ('update', 512): 0.35,
}


def read(path: str) -> list[dict]:
  """The JSON lines of a file."""
  with open(path, encoding='utf-8') as file:
    return [json.loads(line) for line in file if line.strip()]


def table(lines: list[dict]) -> str:
  """A row a cell: seconds, share of the limit, bar, how many times faster.

  The last measurement of a cell counts. Beside transformers generate and a
  plain torch update: their seconds over ours.
  """
  cells = {(r['preset'], r['stage'], r['rows'], r['system']): r for r in lines}
  out = [
    '| model | stage | rows | seconds | tokens/s | share of limit | wanted '
    '| torch, seconds | ratio |',
    '|' + ' --- |' * 9,
  ]
  keys = dict.fromkeys(key[:3] for key in cells)
  for preset, stage, rows in keys:
    ours = cells.get((preset, stage, rows, 'rl_jax'), {})
    torch = cells.get((preset, stage, rows, 'torch'), {})
    bar = BARS.get((stage, rows))
    ratio = ''
    if 'seconds' in ours and 'seconds' in torch:
      ratio = f'{torch["seconds"] / ours["seconds"]:.2f}'
    out.append(
      f'| {preset} | {stage} | {rows} | {_cell(ours, "seconds", "{:.3f}")} '
      f'| {_cell(ours, "tokens_per_second", "{:,.0f}")} '
      f'| {_cell(ours, "share", "{:.1%}")} | {f"{bar:.0%}" if bar else ""} '
      f'| {_cell(torch, "seconds", "{:.3f}")} | {ratio} |'
    )
  reasons = dict.fromkeys(
    f'{r["system"]} {r["stage"]} {r["preset"]} {r["rows"]}: {r["skipped"]}'
    for r in cells.values()
    if 'skipped' in r
  )
  return '\n'.join(out + [''] + [f'not measured: {r}' for r in reasons])


def _cell(row: dict, name: str, form: str) -> str:
  if name in row:
    return form.format(row[name])
  return 'not measured' if 'skipped' in row and name == 'seconds' else ''
