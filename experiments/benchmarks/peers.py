"""Prints the table of ratios from the lines that compare_peers.sh collected.

python -m experiments.benchmarks.peers --lines=peers.jsonl
"""

from collections.abc import Mapping, Sequence
import json
import statistics
from typing import Any

from absl import flags

from experiments.flags import configuration

STAGES = ('generate', 'update', 'step')
# Keys of the median seconds of each stage in the lines of the peers.
PEERS = {
  'trl_cpu': (
    'TRL',
    'generate_tok_per_s',
    'grpo_update_tok_per_s',
    'grpotrainer_steps_per_s',
  ),
  'tunix': ('Tunix', 'sampling', 'update', 'full_step'),
}


def read(lines: Sequence[str]) -> dict[str, dict[str, list[float]]]:
  """{system: {stage, compile or memory_gb: one number per line}}."""
  found: dict[str, dict[str, list[float]]] = {}

  def add(system, name, value):
    found.setdefault(system, {}).setdefault(name, []).append(value)

  for line in lines:
    row: Mapping[str, Any] = json.loads(line)
    if 'bench' not in row:
      for stage, median in row['stage_seconds'].items():
        add('rl_jax', stage, median)
      add('rl_jax', 'step', row['seconds_median'])
      add('rl_jax', 'memory_gb', row['peak_memory_gb'])
      add('rl_jax', 'compile', sum(row['compile_seconds'].values()))
      continue
    name, *keys = PEERS[row['bench']]
    for stage, key in zip(STAGES, keys, strict=True):
      if key in row:
        add(name, stage, row[key]['median_s'])
    compiled = [
      row[key]['compile_s'] for key in keys if 'compile_s' in row.get(key, {})
    ]
    if compiled:
      add(name, 'compile', sum(compiled))
    add(name, 'memory_gb', row['peak_rss_mb'] / 1e3)
  return found


def table(results: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
  """Median seconds by stage, and the ratios of the peers' to ours.

  compile: seconds of tracing and compiling all stages, if reported.
  """
  ours = {k: statistics.median(v) for k, v in results['rl_jax'].items()}
  out = [
    '| system | generate | update | step | compile | memory |',
    '|---|---|---|---|---|---|',
  ]
  for system, values in results.items():
    cells = []
    for stage in (*STAGES, 'compile'):
      if stage not in values:
        cells.append('-')
        continue
      seconds = statistics.median(values[stage])
      ratio = f' ({seconds / ours[stage]:.2f}x)' if system != 'rl_jax' else ''
      cells.append(f'{seconds:.2f} s{ratio}')
    cells.append(f'{max(values["memory_gb"]):.2f} GB')
    out.append(f'| {system} | ' + ' | '.join(cells) + ' |')
  return '\n'.join(out)


def quantities(row: Mapping[str, Any]) -> dict[str, float]:
  """Returns what a line of --stage=pairs or --stage=turns measured, by name."""
  memory = {'memory, GB': row['peak_memory_gb']}
  if row['stage'] == 'pairs':
    wall, cpu = row['seconds_median'], row['cpu_seconds_median']
    return {'wall s': wall, 'CPU s': cpu} | memory
  clocks = {'wall s': 'wall_seconds_by_turns', 'CPU s': 'seconds_by_turns'}
  return {
    f'{clock}, {turns} turns': row[key][turns]
    for turns in ('8', '16')
    for clock, key in clocks.items()
  } | memory


def table_in_turn(rows: Sequence[Mapping[str, Any]]) -> str:
  """Medians of both systems and TRL's over ours, of each round the ratio too.

  rows: a line of ours and one of TRL for each round, all of one stage.
  """
  split = {'rl_jax': [], 'TRL': []}
  for row in rows:
    split[row.get('system', 'rl_jax')].append(quantities(row))
  out = ['| | rl_jax | TRL | ratio | rounds |', '|---|---|---|---|---|']
  for name in split['rl_jax'][0]:
    ours, theirs = ([x[name] for x in split[s]] for s in ('rl_jax', 'TRL'))
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    middle = [statistics.median(x) for x in (ours, theirs, ratios)]
    cells = ' | '.join(f'{x:.2f}' for x in middle)
    rounds = f'{min(ratios):.2f} to {max(ratios):.2f}'
    out.append(f'| {name} | {cells} | {rounds} |')
  return '\n'.join(out)


def main(argv):
  """Prints the table."""
  del argv
  with open(_LINES.value, encoding='utf-8') as file:
    lines = file.read().splitlines()
  rows = [json.loads(line) for line in lines]
  if not rows:
    raise ValueError(f'--lines={_LINES.value} has no lines')
  if rows[0].get('stage') in ('pairs', 'turns'):
    print(table_in_turn(rows))
  else:
    print(table(read(lines)))


if __name__ == '__main__':
  _LINES = flags.DEFINE_string('lines', None, 'JSON lines.', required=True)
  configuration.run(main)
